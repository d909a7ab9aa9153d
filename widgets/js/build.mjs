// Bundles each view into one file, as anywidget loads it: `npm run build`. The result is committed, so that users need
// no Node; build.json says from which sources it was made, and a test compares.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "../limelight_widgets/static");
const COMMON = { bundle: true, minify: true, write: false, legalComments: "inline", charset: "utf8", target: "es2022" };

/** Lets `import text from "inline-worker:./file.js"` give the bundled file as text, for a worker made from a blob. */
const inlineWorker = {
  name: "inline-worker",
  setup(build) {
    build.onResolve({ filter: /^inline-worker:/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path.slice("inline-worker:".length)),
      namespace: "inline-worker",
    }));
    build.onLoad({ filter: /.*/, namespace: "inline-worker" }, async ({ path }) => {
      const result = await esbuild.build({ ...COMMON, entryPoints: [path], format: "iife" });
      return { contents: result.outputFiles[0].text, loader: "text" };
    });
  },
};

// A file of src/views is the script of a view, and bears the name that the view has in Python.
const VIEWS = readdirSync(join(HERE, "src/views")).map((name) => `views/${name}`);
const ENTRIES = ["engine.js", "view.js", ...VIEWS, "views.css"];

for (const entry of ENTRIES) {
  const result = await esbuild.build({
    ...COMMON, entryPoints: [join(HERE, "src", entry)], format: "esm", plugins: [inlineWorker],
  });
  const [{ contents }] = result.outputFiles;
  writeFileSync(join(OUT, basename(entry)), contents);
  console.log(`${basename(entry)} ${contents.length} bytes`);
}
// A player runs without a kernel, in a page that holds it as an inline script.
for (const name of readdirSync(join(HERE, "src/players"))) {
  const result = await esbuild.build({ ...COMMON, entryPoints: [join(HERE, "src/players", name)], format: "iife" });
  writeFileSync(join(OUT, `player_${name}`), result.outputFiles[0].contents);
}
// Where the server finds extensions of JupyterLab; package.json beside it is what the server reads.
const extension = await esbuild.build({ ...COMMON, entryPoints: [join(HERE, "src/labextension/extension.js")], format: "iife" });
const EXTENSION = join(HERE, "../limelight_widgets/labextensions/limelight/static");
mkdirSync(EXTENSION, { recursive: true });
writeFileSync(join(EXTENSION, "extension.js"), extension.outputFiles[0].contents);
const sources = readdirSync(join(HERE, "src"), { recursive: true, withFileTypes: true })
  .filter((file) => file.isFile())
  .map((file) => join(file.parentPath, file.name))
  .concat(join(HERE, "build.mjs"), join(HERE, "package-lock.json"));
const hashes = sources.sort().map((file) => [relative(HERE, file), createHash("sha256").update(readFileSync(file)).digest("hex")]);
writeFileSync(join(OUT, "build.json"), `${JSON.stringify(Object.fromEntries(hashes), null, 2)}\n`);
