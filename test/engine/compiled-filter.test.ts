import { expect, test } from "bun:test";
import { evaluateFilter, withoutNewerCalls } from "../../src/engine/sandbox/runtime/compiled-filter.ts";
import { callFilter } from "../../src/engine/sandbox/sandbox-config.ts";

const [x64, x86, arm64] = [0xc000003e, 0x40000003, 0xc00000b7];
const [allowed, forbidden, missing, killed] = [0x7fff0000, 0x00050001, 0x00050026, 0];

/** As libseccomp writes it: by architecture, then number after number. */
const filter = encode([
  [0x20, 0, 0, 4],
  [0x15, 0, 5, x64],
  [0x20, 0, 0, 0],
  [0x35, 8, 0, 0x4000_0000],
  [0x15, 6, 0, 39],
  [0x15, 5, 0, 300],
  [0x06, 0, 0, forbidden],
  [0x15, 0, 4, x86],
  [0x20, 0, 0, 0],
  [0x15, 1, 0, 20],
  [0x06, 0, 0, forbidden],
  [0x06, 0, 0, allowed],
  [0x06, 0, 0, killed],
]);

test.each([
  ["an allowed call", x64, 39, allowed],
  ["one that is forbidden", x64, 40, forbidden],
  ["the newest", x64, 300, allowed],
  ["one after it", x64, 301, missing],
  ["one far after it", x64, 9999, missing],
  ["the last before numbers of an architecture's own", x64, 0xeffff, missing],
  ["an architecture's own", x64, 0xf0001, forbidden],
  ["x32", x64, 0x4000_0001, killed],
  ["by another architecture, which has a newest one of its own", x86, 21, missing],
  ["its allowed one", x86, 20, allowed],
  ["its forbidden one", x86, 5, forbidden],
  ["by an architecture that the filter does not know", arm64, 9999, killed],
])("%s", (_, architecture, number, outcome) => {
  expect(evaluateFilter(withoutNewerCalls(filter), architecture, number)).toBe(outcome);
});

test.each([
  ["cut off", filter.subarray(0, 20)],
  ["without an end", encode([[0x20, 0, 0, 4]])],
  ["with an unknown instruction", encode([[0x07, 0, 0, 4]])],
])("a filter %s is refused", (_, broken) => {
  expect(() => withoutNewerCalls(broken)).toThrow("a filter of system calls");
});

test("one filter serves commands of every network: the capability that some have more is not in it", () => {
  for (const architecture of ["amd64", "arm64"])
    for (const kind of ["private", "host"] as const)
      expect(callFilter(architecture, { kind })).toEqual(callFilter(architecture, { kind: "none" }));
});

function encode(instructions: readonly (readonly [number, number, number, number])[]): Uint8Array {
  const bytes = Buffer.alloc(8 * instructions.length);
  for (const [index, [code, ifTrue, ifFalse, operand]] of instructions.entries()) {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.set([ifTrue, ifFalse], 8 * index + 2);
    bytes.writeUInt32LE(operand, 8 * index + 4);
  }
  return bytes;
}
