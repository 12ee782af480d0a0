import { expect, test } from "bun:test";
import { freeSubIds, processesWithin } from "../../src/cli/process/user-namespace.ts";

test.each([
  [[""], "100000-165535"],
  [["ann:100000:65536\n", ""], "165536-231071"],
  [["ann:100000:65536\nben:165536:65536\n", "ann:100000:65536\ncarl:300000:1000\n"], "301000-366535"],
  [["ann:1000:1\n# not a line\n"], "100000-165535"],
])("free sub-ids beside %j: %s", (tables, range) => {
  expect(freeSubIds(tables)).toBe(range);
});

test.each([
  [96_365, 32_768, 16_384],
  [96_365, 4_194_304, 95_341],
  [4096, 32_768, 3072],
  [100, 32_768, 75],
  [1, 32_768, 1],
])("with %i processes for a user and %i for the machine, a namespace gets %i", (own, most, within) => {
  expect(processesWithin(own, most)).toBe(within);
});
