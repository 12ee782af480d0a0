/** Hints for agents: command lines are replaced by tools and their arguments, or left out. */
import { expect, test } from "bun:test";
import { failureForAgent, hintForAgent, warningForAgent } from "../../src/cli/mcp/hints.ts";

test.each<[hint: string, expected: string | undefined]>([
  [
    "`bough images` lists its images; `bough images import REFERENCE` imports one from a registry.",
    "The tool `images` lists its images.",
  ],
  [
    "`bough -S work session checkout BRANCH` switches to another branch; `bough -S work use IMAGE` sets an image for this one.",
    "The tool `run` with session: work, image: IMAGE, keep: true sets an image for this one.",
  ],
  [
    "Give more digits; `bough ps --all` lists them.",
    "Give more digits; the tool `operations` with all: true lists them.",
  ],
  ["`bough session show k` shows them.", "The tool `sessions` with session: k shows them."],
  [
    "If that is right, `--update-lock=alpine:3.20` takes what it is now.",
    "If that is right, `update_lock=alpine:3.20` takes what it is now.",
  ],
  ["Allow it more time with --timeout SECONDS.", "Allow it more time with timeout_seconds."],
  ["Killed: out of memory (limit 64 MiB); raise it with --memory.", "Killed: out of memory (limit 64 MiB)."],
  [
    "Give the variable a default in an ARG before FROM, or a value with --build-arg.",
    "Give the variable a default in an ARG before FROM, or a value with build_args.",
  ],
  ["Give a number: -u 1000:1000. --no-config runs as root.", "Give a number: user 1000:1000."],
  ["Free space on its disk; on the embedded engine, run `bough engine prune`.", "Free space on its disk."],
  [
    "bough does not accept larger responses. Is this the address of an image service?",
    "bough does not accept larger responses. Is this the address of an image service?",
  ],
  ["A failed build prints the line to paste: bough -S build:<hash> shell --failed-step", undefined],
  [
    "To open the failed step, as its command found it (without KEY):\n  bough --local -S build:1 shell --failed-step\n  bough --local -S build:1 run -D --failed-step -- COMMAND",
    "To open the failed step, as its command found it (without KEY):\n  the tool `run` with session: build:1, failed_step: true",
  ],
  [
    "Exit code 127: a program was not found in the image.\nTo open the image before the failed step:\n  bough -S b session checkout layer:1\n  bough -S b run -D -- COMMAND",
    "Exit code 127: a program was not found in the image.",
  ],
  [
    "Build again. The image before it:\n  bough shell 4d004027",
    "Build again. The image before it:\n  the tool `run` with image: 4d004027",
  ],
  ["`bough kill --all` ends them.", undefined],
])("%s", (hint, expected) => expect(hintForAgent(hint)).toBe(expected as string));

test.each([
  ["only a build with --docker keeps it", "only a build with docker: true keeps it"],
  [
    "left out by default excludes: dist (--no-default-excludes copies them)",
    "left out by default excludes: dist (no_default_excludes: true copies them)",
  ],
  ["--build-arg A has no effect", "build_args A has no effect"],
  [
    "parts of stdout were lost on the way: `bough logs 1` has them",
    "parts of stdout were lost on the way: the tool `logs` with operation: 1 has them",
  ],
  ["RUN make --target prod --docker: it is quoted", "RUN make --target prod --docker: it is quoted"],
])("a warning: %s", (warning, expected) => expect(warningForAgent(warning)).toBe(expected));

test("the output of a command is not changed", () => {
  const message = "--target none: no such stage\nIts output:\nsee `bough images`, --target";
  expect(failureForAgent({ message, hint: undefined })).toBe(message.replace("--target none", "target none"));
});
