// Writes into coolest.wat what it was made from, so that a test can tell when it is stale (crates/cli/tests/cli/guests.rs).
import { readFileSync, writeFileSync } from "node:fs";

let hash = 0xcbf29ce484222325n; // FNV-1a
for (const file of ["index.ts", "supercargo.ts"])
  for (const byte of readFileSync(file)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
const text = readFileSync("coolest.wat", "utf8");
writeFileSync("coolest.wat", `;; Made by \`npm run build\` from sources with the hash ${hash.toString(16).padStart(16, "0")}.\n${text}`);
