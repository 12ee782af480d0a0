/** Checks of the executables that a release compiles for other systems. */
import { describe, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { describeExecutable } from "../../scripts/packaging/executable-format.ts";
import { signMachO } from "../../scripts/packaging/mach-o-signature.ts";
import { programLimitBytes } from "../../scripts/packaging/size-limits.ts";
import { targets } from "../../scripts/packaging/targets.ts";
import { compileBough } from "../support/compiled.ts";

describe("the format of an executable is read from its headers", () => {
  test("of the program that runs this test", () => {
    const found = describeExecutable(readFileSync(process.execPath));
    expect(targets.map(({ format }) => format)).toContainEqual(found as (typeof targets)[number]["format"]);
    expect(found?.architecture).toBe(process.arch as "x64");
  });

  test.each([
    ["macOS on Intel", machO(0x01000007), { container: "Mach-O", architecture: "x64" }],
    ["macOS on Apple's processors", machO(0x0100000c), { container: "Mach-O", architecture: "arm64" }],
    ["Windows", portableExecutable(0x8664), { container: "PE", architecture: "x64" }],
    ["Windows on i386", portableExecutable(0x14c), undefined],
    ["a script", new TextEncoder().encode(`#!/bin/sh\n${"#".repeat(100)}`), undefined],
    ["an MS-DOS program", new Uint8Array(100).fill(0x4d), undefined],
    ["an empty file", new Uint8Array(), undefined],
  ] as const)("%s", (_, bytes, expected) => {
    expect(describeExecutable(bytes)).toEqual(expected as never);
  });
});

test("bough adds no more to the runtime than a release allows", () => {
  const added = statSync(compileBough()).size - statSync(process.execPath).size;
  expect(added).toBeGreaterThan(0);
  expect(added).toBeLessThan(programLimitBytes);
});

describe("a Mach-O executable is signed again after it was changed", () => {
  const signed = signMachO(machO(0x01000007), "bough");
  const view = new DataView(signed.buffer);
  const start = signatureStart;
  const directory = start + view.getUint32(start + 16);

  test("the signature is one code directory, to the end of the file, with the identifier", () => {
    expect(view.getUint32(start)).toBe(0xfade0cc0);
    expect(view.getUint32(start + 4)).toBe(signed.byteLength - start);
    expect(view.getUint32(start + 8)).toBe(1);
    expect(view.getUint32(directory)).toBe(0xfade0c02);
    expect(directory + view.getUint32(directory + 4)).toBe(signed.byteLength);
    const name = directory + view.getUint32(directory + 20);
    expect(Buffer.from(signed).toString("latin1", name, name + 6)).toBe("bough\0");
  });

  test("the headers contain its place, and the last segment covers it", () => {
    const command = signed.byteLength - view.getUint32(signatureCommandAt + 8, true);
    expect(view.getUint32(signatureCommandAt + 12, true)).toBe(command);
    expect(Number(view.getBigUint64(linkEditAt + 48, true))).toBe(signed.byteLength - linkEditStart);
    expect(Number(view.getBigUint64(linkEditAt + 32, true))).toBe(0x1000);
  });

  test("every page has its hash, also the headers and the incomplete last page", () => {
    const count = view.getUint32(directory + 28);
    const hashes = directory + view.getUint32(directory + 16);
    expect(count).toBe(Math.ceil(start / 4096));
    for (let page = 0; page < count; page++) {
      const content = signed.subarray(page * 4096, Math.min((page + 1) * 4096, start));
      const hash = new Bun.CryptoHasher("sha256").update(content).digest("hex");
      const at = hashes + page * 32;
      expect(Buffer.from(signed.subarray(at, at + 32)).toString("hex")).toBe(hash);
    }
  });

  test("signing again changes nothing", () => {
    expect(signMachO(signed, "bough")).toEqual(signed);
  });

  test("an executable without room for a signature is refused", () => {
    const bare = machO(0x01000007);
    new DataView(bare.buffer).setUint32(16, 2, true);
    expect(() => signMachO(bare, "bough")).toThrow("no room");
  });
});

const linkEditStart = 0x3000;
const signatureStart = 0x3210;
const linkEditAt = 32 + 72;
const signatureCommandAt = 32 + 2 * 72;

/** A minimal executable for the loader: two segments, and a signature that no longer fits. */
function machO(processor: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(0x3400).map((_, index) => index % 251);
  const view = new DataView(bytes.buffer);
  bytes.fill(0, 0, 4096);
  view.setUint32(0, 0xcffaedfe);
  view.setUint32(4, processor, true);
  view.setUint32(16, 3, true);
  const segment = (at: number, name: string, start: number, size: number) => {
    view.setUint32(at, 0x19, true);
    view.setUint32(at + 4, 72, true);
    bytes.set(new TextEncoder().encode(name), at + 8);
    view.setBigUint64(at + 40, BigInt(start), true);
    view.setBigUint64(at + 48, BigInt(size), true);
  };
  segment(32, "__TEXT", 0, linkEditStart);
  segment(linkEditAt, "__LINKEDIT", linkEditStart, bytes.byteLength - linkEditStart);
  view.setUint32(signatureCommandAt, 0x1d, true);
  view.setUint32(signatureCommandAt + 4, 16, true);
  view.setUint32(signatureCommandAt + 8, signatureStart, true);
  view.setUint32(signatureCommandAt + 12, bytes.byteLength - signatureStart, true);
  return bytes;
}

function portableExecutable(machine: number): Uint8Array {
  const bytes = new Uint8Array(256);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 0x4d5a);
  view.setUint32(0x3c, 128, true);
  view.setUint32(128, 0x50450000);
  view.setUint16(132, machine, true);
  return bytes;
}
