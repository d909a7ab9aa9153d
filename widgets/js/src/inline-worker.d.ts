// What build.mjs makes of such an import: the bundled worker as text.
declare module "inline-worker:*" {
  const source: string;
  export default source;
}
