// Bundles src/ into built/: hashed names, so that a browser can keep each file; one HTML file that names them.

import { build } from "esbuild";
import { cp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "built");
const ENTRIES = { main: "src/main.jsx" };

const { metafile } = await build({
  absWorkingDir: HERE, entryPoints: ENTRIES, outdir: OUT, bundle: true, splitting: true, format: "esm", minify: true,
  target: "es2022", jsx: "automatic", jsxImportSource: "preact", entryNames: "[name]-[hash]", chunkNames: "[name]-[hash]",
  legalComments: "none", metafile: true, logLevel: "warning", // LICENSES.txt has the licences whole
});

const built = Object.entries(metafile.outputs).find(([, one]) => one.entryPoint === ENTRIES.main);
const [script, { cssBundle: style }] = built;
const html = await readFile(join(HERE, "src/index.html"), "utf8");
await writeFile(join(OUT, "index.html"), html.replace("main.js", basename(script)).replace("main.css", basename(style)));
await cp(join(HERE, "src/icon.svg"), join(OUT, "icon.svg"));
await writeFile(join(OUT, "LICENSES.txt"), await licences(Object.keys(metafile.inputs)));
const made = new Set([...Object.keys(metafile.outputs).map((path) => basename(path)), "index.html", "icon.svg", "LICENSES.txt"]);
for (const name of await readdir(OUT)) if (!made.has(name)) await rm(join(OUT, name)); // of builds before

// The licence of each package that a file was taken from.
async function licences(inputs) {
  const names = new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  const texts = await Promise.all([...names].sort().map(async (name) => {
    const folder = join(HERE, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
    if (!file) throw new Error(`${name} has no file of its licence`);
    return `${name} ${version}\n\n${await readFile(join(folder, file), "utf8")}`;
  }));
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}
