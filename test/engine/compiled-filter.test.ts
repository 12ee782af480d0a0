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

/** A filter as libseccomp writes it: by architecture, then each number in turn. */
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
  ["a forbidden call", x64, 40, forbidden],
  ["the newest known call", x64, 300, allowed],
  ["the first unknown call", x64, 301, missing],
  ["a later unknown call", x64, 9999, missing],
  ["the last unknown call before an architecture's own numbers", x64, 0xeffff, missing],
  ["a call of an architecture's own numbers", x64, 0xf0001, forbidden],
  ["an x32 call", x64, 0x4000_0001, killed],
  ["an unknown call of another architecture", x86, 21, missing],
  ["an allowed call of another architecture", x86, 20, allowed],
  ["a forbidden call of another architecture", x86, 5, forbidden],
  ["a call of an unknown architecture", arm64, 9999, killed],
])("the improved filter has the right result for %s", (_, architecture, number, outcome) => {
  expect(evaluateFilter(improveFilter(filter), architecture, number)).toBe(outcome);
});

test.each([
  ["cut off", filter.subarray(0, 20)],
  ["without an end", encode([[0x20, 0, 0, 4]])],
  ["with an unknown instruction", encode([[0x07, 0, 0, 4]])],
])("a filter %s is refused", (_, broken) => {
  expect(() => improveFilter(broken)).toThrow("a filter of system calls");
});

/** A filter as libseccomp writes it: each number in turn, the newest first. Numbers divisible by 5 need an argument of 8. */
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
  [
    "more calls than a conditional jump can skip half of",
    Array.from({ length: 220 }, (_, index) => 3 * index),
  ],
  ["more calls than a filter may have", Array.from({ length: 500 }, (_, index) => 2 * index)],
])("the search tree changes no result: %s", (_, numbers) => {
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

test("the search tree finds each number in fewer than 30 instructions", () => {
  const filter = decodeFilter(chainOf(Array.from({ length: 220 }, (_, index) => 3 * index)));
  const searched = withSearchTree(filter);
  const steps = [1, 3, 6, 303, 1023].map((number) => countSteps(searched, number));
  expect(Math.max(...steps)).toBeLessThan(30);
  expect(countSteps(filter, 3)).toBeGreaterThan(200);
});

/** Returns the number of instructions that are evaluated for a call. */
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

test("commands of every network have the same filter, although some have one more capability", () => {
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
