/**
 * Makes an ad-hoc code signature for a 64-bit Mach-O executable. Bun signs what it compiles for arm64. For x64 it leaves its
 * runtime's signature in place, which no longer matches the bytes: macOS may kill such a program.
 * Layouts: Apple's <mach-o/loader.h> and <kern/cs_blobs.h>.
 */
const segmentCommand = 0x19;
const signatureCommand = 0x1d;
const superBlobMagic = 0xfade0cc0;
const codeDirectoryMagic = 0xfade0c02;
const codeDirectoryVersion = 0x20400;
const adHoc = 0x2;
const linkerSigned = 0x20000;
const mainBinary = 1n;
const pageBits = 12;
const hashBytes = 32;
const superBlobBytes = 20;
const codeDirectoryBytes = 88;

/** Returns a copy with a signature over all of its bytes, in place of the old one. */
export function signMachO(executable: Uint8Array, identifier: string): Uint8Array {
  const commands = findCommands(executable);
  const signatureStart = commands.signature.view.getUint32(8, true);
  const name = new TextEncoder().encode(`${identifier}\0`);
  const pageCount = Math.ceil(signatureStart / (1 << pageBits));
  const hashOffset = codeDirectoryBytes + name.byteLength;
  const directoryBytes = hashOffset + pageCount * hashBytes;
  const signatureBytes = superBlobBytes + directoryBytes;

  // The headers are signed, too, so they must be final before they are hashed.
  const signed = new Uint8Array(signatureStart + signatureBytes);
  signed.set(executable.subarray(0, signatureStart));
  const { signature, text, linkEdit } = findCommands(signed);
  signature.view.setUint32(12, signatureBytes, true);
  const linkEditStart = linkEdit.view.getBigUint64(40, true);
  const linkEditBytes = BigInt(signed.byteLength) - linkEditStart;
  linkEdit.view.setBigUint64(48, linkEditBytes, true);
  const memoryPage = 0x1000n;
  linkEdit.view.setBigUint64(32, ((linkEditBytes + memoryPage - 1n) / memoryPage) * memoryPage, true);

  const view = new DataView(signed.buffer, signatureStart);
  for (const [index, word] of [superBlobMagic, signatureBytes, 1, 0, superBlobBytes].entries()) {
    view.setUint32(index * 4, word);
  }
  const directory = new DataView(signed.buffer, signatureStart + superBlobBytes);
  const words = [
    codeDirectoryMagic,
    directoryBytes,
    codeDirectoryVersion,
    adHoc | linkerSigned,
    hashOffset,
    codeDirectoryBytes,
    0, // special slots
    pageCount,
    signatureStart, // the limit of what is signed
  ];
  for (const [index, word] of words.entries()) directory.setUint32(index * 4, word);
  const sha256 = 2;
  for (const [index, byte] of [hashBytes, sha256, 0, pageBits].entries())
    directory.setUint8(36 + index, byte);
  directory.setBigUint64(64, text.view.getBigUint64(40, true));
  directory.setBigUint64(72, text.view.getBigUint64(48, true));
  directory.setBigUint64(80, mainBinary);
  const at = signatureStart + superBlobBytes;
  signed.set(name, at + codeDirectoryBytes);
  for (let page = 0; page < pageCount; page++) {
    const end = Math.min((page + 1) << pageBits, signatureStart);
    const hash = new Bun.CryptoHasher("sha256").update(signed.subarray(page << pageBits, end)).digest();
    signed.set(hash, at + hashOffset + page * hashBytes);
  }
  return signed;
}

interface LoadCommand {
  view: DataView;
}

function findCommands(bytes: Uint8Array): {
  signature: LoadCommand;
  text: LoadCommand;
  linkEdit: LoadCommand;
} {
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found: Record<string, LoadCommand> = {};
  let at = 32;
  for (let left = header.getUint32(16, true); left > 0; left--) {
    const size = header.getUint32(at + 4, true);
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, size);
    const command = view.getUint32(0, true);
    if (command === signatureCommand) found.signature = { view };
    if (command === segmentCommand) {
      const name = new TextDecoder().decode(bytes.subarray(at + 8, at + 24)).replace(/\0.*$/s, "");
      found[name] = { view };
    }
    at += size;
  }
  const { signature, __TEXT: text, __LINKEDIT: linkEdit } = found;
  if (signature === undefined || text === undefined || linkEdit === undefined) {
    throw new Error("this Mach-O file has no room for a signature");
  }
  return { signature, text, linkEdit };
}
