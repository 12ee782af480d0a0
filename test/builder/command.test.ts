import { describe, expect, test } from "bun:test";
import {
  commandAsWritten,
  expandCommand,
  numericUser,
  processFields,
} from "../../src/builder/commands/command.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { quote } from "../../src/programs/quote.ts";

const declared = (name: string) => ({ NAME: "value", SPACED: "two words" })[name];

function fieldsOf(run: string, user?: string) {
  const instruction = parseDockerfile(`FROM x\n${run}\n`, "Dockerfile").instructions[1];
  if (instruction?.name !== "RUN") throw new Error("no RUN");
  return processFields(expandCommand(instruction, declared, "\\"), user);
}

describe("the request to the service for a RUN", () => {
  test.each([
    ["RUN echo $NAME", undefined, { command: "echo value", shell: true }],
    ["RUN echo $UNKNOWN '$NAME'", undefined, { command: "echo $UNKNOWN '$NAME'", shell: true }],
    [
      'RUN ["echo", "$NAME", "$UNKNOWN", "a b"]',
      undefined,
      { command: "echo", args: ["value", "", "a b"], shell: false },
    ],
    [
      'RUN ["echo", "it\'s", "\\"$SPACED\\""]',
      undefined,
      { command: "echo", args: ["it's", '"two words"'], shell: false },
    ],
    [
      'RUN ["sed", "s/\\\\./x/", "{print $1}"]',
      undefined,
      { command: "sed", args: ["s/\\./x/", "{print $1}"], shell: false },
    ],
    [
      'RUN ["/bin/sh", "-ec", "for f in *; do echo $f $NAME; done"]',
      undefined,
      { command: "/bin/sh", args: ["-ec", "for f in *; do echo $f value; done"], shell: false },
    ],
    ["RUN id", "app", { command: "su -s /bin/sh -c id app", shell: true }],
    ["RUN echo 'a b'", "app", { command: "su -s /bin/sh -c 'echo '\\''a b'\\''' app", shell: true }],
    ['RUN ["echo", "a b"]', "app", { command: "su -s /bin/sh -c 'echo '\\''a b'\\''' app", shell: true }],
    ["RUN id", "1000", { command: "id", shell: true, uid: 1000 }],
    ["RUN id", "1000:50", { command: "id", shell: true, uid: 1000, gid: 50 }],
    ['RUN ["id"]', "0", { command: "id", args: [], shell: false, uid: 0 }],
  ])("%s as %s", (run, user, fields) => expect(fieldsOf(run, user)).toEqual(fields));
});

test.each(['RUN [""]', 'RUN ["", "x"]', 'RUN ["$UNKNOWN"]'])("%s names no program", (run) => {
  expect(() => fieldsOf(run)).toThrow("the program name of the RUN is empty");
  expect(() => fieldsOf(run, "app")).toThrow("program name of the RUN is empty");
});

test("a here-document with a #! line is run as a program with its text unchanged", async () => {
  const { command } = fieldsOf("RUN <<EOF\n#!/bin/cat\n$NAME 'END'\nEND\nEOF");
  const shell = Bun.spawn(["sh", "-c", command], { stdout: "pipe" });
  expect(await new Response(shell.stdout).text()).toBe("#!/bin/cat\n$NAME 'END'\nEND\n");
  expect(await shell.exited).toBe(0);
});

test.each([["app"], ["app:app"], ["1000:app"], [""], ["-1"], ["2147483648"], ["1:4294967296"]])(
  "USER %p is not a number",
  (user) => {
    expect(numericUser(user)).toBeUndefined();
  },
);

test.each([["plain"], ["a b"], ["it's"], [""], ["$HOME `id` \\"], ["-n"], ["*"], ["a\nb"], ["ü"], ["~"]])(
  "a shell reads the quoted %p as one word",
  async (word) => {
    const shell = Bun.spawn(["sh", "-c", `printf '%s|' ${quote(word)}`], { stdout: "pipe" });
    expect(await new Response(shell.stdout).text()).toBe(`${word}|`);
  },
);

describe("the command that a RUN passes on with --docker", () => {
  const bash = ["/bin/bash", "-o", "pipefail", "-c"];
  test.each<[string, string[], object]>([
    ["RUN echo $NAME '$NAME' \\$NAME", [], { form: "shell", line: "echo $NAME '$NAME' \\$NAME" }],
    ["RUN a | b", bash, { form: "exec", words: [...bash, "a | b"] }],
    ["RUN <<EOF\necho $NAME\nEOF", bash, { form: "exec", words: [...bash, "echo $NAME\n"] }],
    ["RUN cat <<EOF\n$NAME\nEOF", [], { form: "shell", line: "cat <<EOF\n$NAME\nEOF" }],
    ['RUN ["echo", "$NAME", "$UNKNOWN"]', bash, { form: "exec", words: ["echo", "$NAME", "$UNKNOWN"] }],
  ])("%s through %j", (run, shell, expected) => {
    const instruction = parseDockerfile(`FROM x\n${run}\n`, "Dockerfile").instructions[1];
    if (instruction?.name !== "RUN") throw new Error("no RUN");
    expect(commandAsWritten(instruction, shell)).toEqual(expected as ReturnType<typeof commandAsWritten>);
  });
});
