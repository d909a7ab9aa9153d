// Runs a file of ONNX on numbers from standard input, to show that it needs no Python:
//     node run_onnx.mjs model.onnx < {"shape": [2, 64], "data": [...]}
// and prints the first result as {"shape": [...], "data": [...]}.
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-web";

ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";
const session = await ort.InferenceSession.create(readFileSync(process.argv[2]));
const { shape, data } = JSON.parse(readFileSync(0, "utf8"));
const x = new ort.Tensor("float32", Float32Array.from(data), shape);
const results = await session.run({ [session.inputNames[0]]: x });
const first = results[session.outputNames[0]];
console.log(JSON.stringify({ shape: first.dims, data: Array.from(first.data) }));
