import { expect, test } from "bun:test";
import { nearest } from "../src/suggest.ts";

const flags = ["--build-arg", "--dockerfile", "--no-cache", "--tag", "--timeout"];
const instructions = ["ADD", "CMD", "COPY", "ENV", "ENTRYPOINT", "FROM", "RUN", "WORKDIR"];

const cases: [word: string, candidates: string[], expected: string | undefined][] = [
  ["RNU", instructions, "RUN"],
  ["run", instructions, "RUN"],
  ["RUNN", instructions, "RUN"],
  ["FORM", instructions, "FROM"],
  ["CPY", instructions, "COPY"],
  ["WROKDIR", instructions, "WORKDIR"],
  ["ENTRYPIONTS", instructions, "ENTRYPOINT"],
  ["true", instructions, undefined],
  ["XYZZY", instructions, undefined],
  ["", instructions, undefined],
  ["--buildarg", flags, "--build-arg"],
  ["--no-chace", flags, "--no-cache"],
  ["--docker-file", flags, "--dockerfile"],
  ["--tags", flags, "--tag"],
  ["--verbose", flags, undefined],
  ["anything", [], undefined],
  ["bild", ["build", "files"], "build"],
  ["uild", ["build"], "build"],
  ["ubild", ["build"], "build"],
  ["--memroy", ["--memory", "--cpus"], "--memory"],
  ["-tag", flags, "--tag"],
  // Other words, which a suggestion would lead astray.
  ["--from", ["--sbom", "--format"], undefined],
  ["up", ["cp", "ps", "ls", "use"], undefined],
  ["rm", ["rmi", "run"], "rmi"],
  ["--gpus", ["--cpus"], undefined],
  ["--link", ["--list"], undefined],
  ["--init", ["--ulimit", "--limit"], undefined],
  ["nginx", ["nginx", "pginx"], "nginx"],
];

test.each(cases)("%p among %j is nearest to %p", (word, candidates, expected) => {
  expect(nearest(word, candidates)).toBe(expected);
});

test("a word of ten million letters has no suggestion", () => {
  expect(nearest("x".repeat(10_000_000), instructions)).toBeUndefined();
});
