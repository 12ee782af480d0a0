import { expect, test } from "bun:test";
import { improveFilter } from "../../src/engine/sandbox/runtime/compiled-filter.ts";
import {
  decodeFilter,
  encodeFilter,
  evaluate,
  type Instruction,
} from "../../src/engine/sandbox/runtime/filter-program.ts";
import { withSearchTree } from "../../src/engine/sandbox/runtime/filter-tree.ts";
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
  expect(evaluateFilter(improveFilter(filter), architecture, number)).toBe(outcome);
});

test.each([
  ["cut off", filter.subarray(0, 20)],
  ["without an end", encode([[0x20, 0, 0, 4]])],
  ["with an unknown instruction", encode([[0x07, 0, 0, 4]])],
])("a filter %s is refused", (_, broken) => {
  expect(() => improveFilter(broken)).toThrow("a filter of system calls");
});

/** As libseccomp writes it: one number after the other, the newest first. Every fifth is allowed with an argument of 8 alone. */
function chainOf(numbers: readonly number[]): Uint8Array {
  const call = (number: number): Row[] => [
    [0x15, 0, 4, number],
    ...(number % 5 === 0 ? ([[0x20, 0, 0, 16]] as Row[]) : ([[0x05, 0, 0, 0]] as Row[])),
    number % 5 === 0 ? [0x15, 0, 1, 8] : [0x05, 0, 0, 0],
    [0x06, 0, 0, allowed],
    [0x06, 0, 0, forbidden],
  ];
  return encode([
    [0x20, 0, 0, 4],
    [0x15, 1, 0, x64],
    [0x06, 0, 0, killed],
    [0x20, 0, 0, 0],
    ...[...numbers].reverse().flatMap(call),
    [0x06, 0, 0, forbidden],
  ]);
}

test.each([
  ["few calls", [1, 2, 3, 40, 45, 300]],
  ["so many that no condition jumps past half of them", Array.from({ length: 220 }, (_, index) => 3 * index)],
  ["more than a filter may have", Array.from({ length: 500 }, (_, index) => 2 * index)],
])("the search for a number changes no result: %s", (_, numbers) => {
  const chain = chainOf(numbers);
  const searched = encodeFilter(withSearchTree(decodeFilter(chain)));
  expect(searched.length / 8).toBeLessThanOrEqual(4096);
  const others = [1024, 0xeffff, 0xf0001, 0x4000_0001, 0xffff_ffff];
  for (const architecture of [x64, x86, arm64])
    for (const number of [...Array(1024).keys(), ...others])
      for (const argument of [0, 8]) {
        const expected = evaluateFilter(chain, architecture, number, argument);
        if (evaluateFilter(searched, architecture, number, argument) !== expected)
          throw new Error(`${architecture} ${number} ${argument}`);
      }
});

test("a number is found in a few instructions, wherever it stands in the filter", () => {
  const filter = decodeFilter(chainOf(Array.from({ length: 220 }, (_, index) => 3 * index)));
  const searched = withSearchTree(filter);
  const steps = [1, 3, 6, 303, 1023].map((number) => countSteps(searched, number));
  expect(Math.max(...steps)).toBeLessThan(30);
  expect(countSteps(filter, 3)).toBeGreaterThan(200);
});

/** How many instructions are looked at until there is a result. */
function countSteps(instructions: readonly Instruction[], number: number): number {
  let steps = 0;
  const counted = new Proxy([...instructions], {
    get(target, key) {
      if (typeof key === "string" && /^\d+$/.test(key)) steps++;
      return Reflect.get(target, key);
    },
  });
  evaluate(counted, x64, number, 0);
  return steps;
}

test("one filter serves commands of every network: the capability that some have more is not in it", () => {
  for (const architecture of ["amd64", "arm64"])
    for (const kind of ["private", "host"] as const)
      expect(callFilter(architecture, { kind })).toEqual(callFilter(architecture, { kind: "none" }));
});

function evaluateFilter(filter: Uint8Array, architecture: number, number: number, argument = 0) {
  return evaluate(decodeFilter(filter), architecture, number, argument);
}

type Row = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

function encode(instructions: readonly Row[]): Uint8Array {
  const bytes = Buffer.alloc(8 * instructions.length);
  for (const [index, [code, ifTrue, ifFalse, operand]] of instructions.entries()) {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.set([ifTrue, ifFalse], 8 * index + 2);
    bytes.writeUInt32LE(operand, 8 * index + 4);
  }
  return bytes;
}
