import type { ExecutableFormat } from "./targets.ts";

const elfMachines: Record<number, ExecutableFormat["architecture"]> = { 62: "x64", 183: "arm64" };
const machOProcessors: Record<number, ExecutableFormat["architecture"]> = {
  16777223: "x64",
  16777228: "arm64",
};
const peMachines: Record<number, ExecutableFormat["architecture"]> = { 34404: "x64", 43620: "arm64" };

/** Reads the format and architecture from an executable's headers; `undefined` if no target has them. */
export function describeExecutable(bytes: Uint8Array): ExecutableFormat | undefined {
  if (bytes.byteLength < 64) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (view.getUint32(0)) {
    case 0x7f454c46:
      return describeElf(bytes, view);
    case 0xcffaedfe:
      return described("Mach-O", machOProcessors[view.getUint32(4, true)]);
  }
  const header = view.getUint16(0) === 0x4d5a ? view.getUint32(0x3c, true) : bytes.byteLength;
  if (header + 6 > bytes.byteLength || view.getUint32(header) !== 0x50450000) return undefined;
  return described("PE", peMachines[view.getUint16(header + 4, true)]);
}

function described(
  container: ExecutableFormat["container"],
  architecture: ExecutableFormat["architecture"] | undefined,
): ExecutableFormat | undefined {
  return architecture === undefined ? undefined : { container, architecture };
}

/** Reads a 64-bit little-endian ELF file, whose program headers name the loader. */
function describeElf(bytes: Uint8Array, view: DataView): ExecutableFormat | undefined {
  const architecture = elfMachines[view.getUint16(18, true)];
  const start = Number(view.getBigUint64(32, true));
  const size = view.getUint16(54, true);
  const count = view.getUint16(56, true);
  const interpreter = 3;
  for (let at = start; at < start + size * count; at += size) {
    if (view.getUint32(at, true) !== interpreter) continue;
    const offset = Number(view.getBigUint64(at + 8, true));
    const length = Number(view.getBigUint64(at + 32, true));
    const loader = new TextDecoder().decode(bytes.subarray(offset, offset + length - 1));
    return architecture === undefined ? undefined : { container: "ELF", architecture, loader };
  }
  return described("ELF", architecture);
}
