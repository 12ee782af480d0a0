import { expect, test } from "bun:test";
import { freeSubIds } from "../../src/cli/user-namespace.ts";

test.each([
  [[""], "100000-165535"],
  [["ann:100000:65536\n", ""], "165536-231071"],
  [["ann:100000:65536\nben:165536:65536\n", "ann:100000:65536\ncarl:300000:1000\n"], "301000-366535"],
  [["ann:1000:1\n# not a line\n"], "100000-165535"],
])("sub-ids that nobody has beside %j: %s", (tables, range) => {
  expect(freeSubIds(tables)).toBe(range);
});
