/**
 * What options name as input arrives whole, or the command fails: each option that takes a file or `-`, from each kind of file and pipe,
 * as root and as an ordinary user, whose process starts again in a user namespace.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { linkBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";

const dockerfile = "FROM busybox:1\nRUN echo arrived-whole\n";

interface Option {
  name: string;
  /** What is given as its value. */
  content: string;
  /** The command line, with INPUT for its value. */
  line: string;
  /** A part of the output if the content has arrived. */
  arrives: string;
  /** The name of standard input, if the option has a special one. */
  standardInput?: string;
  /** The exit code for `/dev/null` as value. */
  ofNothing: number;
}

const options: readonly Option[] = [
  {
    name: "build --dockerfile",
    content: dockerfile,
    line: "bough build --docker --dockerfile INPUT context",
    arrives: "RUN echo arrived-whole",
    standardInput: "-",
    ofNothing: 2,
  },
  {
    name: "build --secret src=",
    content: "twelve bytes",
    line: "bough build --docker --no-cache --secret id=t,src=INPUT secret",
    arrives: "12 /run/secrets/t",
    ofNothing: 0,
  },
  {
    name: "run --env-file",
    content: "A=arrived-whole\n",
    line: "bough run --env-file INPUT busybox:1 sh -c 'echo [$A]'",
    arrives: "[arrived-whole]",
    ofNothing: 0,
  },
  {
    name: "run -d --env-file",
    content: "A=arrived-whole\n",
    line: "bough -q run -d --env-file INPUT busybox:1 sh -c 'echo [$A]' > id && bough logs --follow $(cat id)",
    arrives: "[arrived-whole]",
    ofNothing: 0,
  },
  {
    name: "run --script",
    content: "echo arrived-$1\n",
    line: "bough run --script INPUT busybox:1 whole",
    arrives: "arrived-whole",
    standardInput: "-",
    ofNothing: 0,
  },
  {
    name: "bake --file",
    content: '{"target": {"default": {"context": "context"}}}',
    line: "bough bake --file INPUT",
    arrives: "default: 2 steps",
    standardInput: "-",
    ofNothing: 2,
  },
  {
    name: "docker-buildx build --file",
    content: dockerfile,
    line: "docker-buildx build --file INPUT context",
    arrives: "RUN echo arrived-whole",
    standardInput: "-",
    ofNothing: 1,
  },
  {
    name: "docker-buildx bake --file",
    content: "services: {app: {build: {context: context}}}",
    line: "docker-buildx bake --file INPUT",
    arrives: "RUN echo hi",
    standardInput: "-",
    ofNothing: 1,
  },
];

/** Contexts of a build can be on standard input, but not in a pipe with a name. */
const contexts: readonly Option[] = ["cat plain.Dockerfile", "tar -C context -c ."].map((content) => ({
  name: `build - of ${content}`,
  content,
  line: "bough build --docker INPUT",
  arrives: "came from standard input",
  standardInput: "-",
  ofNothing: 2,
}));

/** What is read from a place that only standard input can be. */
const onInput: readonly Option[] = [
  ...contexts,
  {
    name: "images import docker-archive:-",
    content: "bough images export busybox:1 docker-archive:-",
    line: "bough images import docker-archive:INPUT --tag arrived:1 && bough run arrived:1 true",
    arrives: "importing docker-archive:-",
    standardInput: "-",
    ofNothing: 2,
  },
];

/** A place to read from: a command line in which it is the value of the option, and whether anything arrives. */
type Source = readonly [
  name: string,
  write: (option: Option) => string,
  result: "arrives" | "fails" | "nothing",
];

const given = ({ line }: Option, word: string) => line.replace("INPUT", word);
const stdin = ({ standardInput = "/dev/stdin" }: Option) => standardInput;

const sources: readonly Source[] = [
  ["a file", (option) => given(option, "$CONTENT"), "arrives"],
  ["a pipe", (option) => `cat "$CONTENT" | { ${given(option, stdin(option))}; }`, "arrives"],
  ["/dev/stdin", (option) => `cat "$CONTENT" | { ${given(option, "/dev/stdin")}; }`, "arrives"],
  ["<(...)", (option) => given(option, '<(cat "$CONTENT")'), "arrives"],
  ["a named pipe", (option) => `cat "$CONTENT" > fifo & ${given(option, "fifo")}`, "arrives"],
  [
    "a here-document",
    (option) => `{ ${given(option, stdin(option))}; } <<'X'\n${option.content}\nX`,
    "arrives",
  ],
  [
    "a slow writer",
    (option) => given(option, '<(head -c 5 "$CONTENT"; sleep 0.2; tail -c +6 "$CONTENT")'),
    "arrives",
  ],
  ["a writer that dies", (option) => given(option, "<(kill -9 $BASHPID)"), "fails"],
  ["closed standard input", (option) => `{ ${given(option, stdin(option))}; } <&-`, "fails"],
  ["/dev/null", (option) => given(option, "/dev/null"), "nothing"],
  ["what never ends", (option) => given(option, "/dev/zero"), "fails"],
];

/** What is typed or in a here-document ends with a line's end, which is a thirteenth byte. */
function patternOf({ arrives }: Option): RegExp {
  return new RegExp(arrives.replace(/[[\]()|.]/g, "\\$&").replace("12 ", "1[23] "));
}

let user: OrdinaryUser;
const root = temporaryDirectory();

beforeAll(async () => {
  user = makeOrdinaryUser();
  await makeBusyboxLayout(join(root, "layout"));
  writeFiles(root, {
    "plain.Dockerfile": "FROM busybox:1\nRUN echo hi\n",
    "context/Dockerfile": "FROM busybox:1\nRUN echo hi\n",
    "secret/Dockerfile": "FROM busybox:1\nRUN --mount=type=secret,id=t,required wc -c /run/secrets/t\n",
  });
  for (const name of ["layout", "plain.Dockerfile", "context", "secret"]) user.give(join(root, name), name);
  for (const place of [root, user.home]) {
    linkBough(place);
    Bun.spawnSync(["ln", "-s", "bough", join(place, "docker-buildx")]);
  }
  for (const who of ["root", "user"] as const)
    expect(await runAs(who, "bough images import oci:layout:latest --tag busybox:1")).toMatchObject({
      exitCode: 0,
    });
});
afterAll(() => user.remove());

/** Runs a script of bash in a directory of the user. */
async function runAs(who: "root" | "user", script: string) {
  const home = who === "root" ? root : user.home;
  const prefix = who === "root" ? [] : user.prefix;
  const variables = [`PATH=${home}:${process.env.PATH}`, `HOME=${home}`, "BOUGH_DOCKER_HOST=none"];
  const command = ["env", "-i", "-C", home, ...variables, "bash", "-c", script];
  return endOf(Bun.spawn([...prefix, ...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" }));
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

describe.each(["root", "user"] as const)("as %s", (who) => {
  const rows = options.flatMap((option) =>
    sources.map(([source, write, result]) => [option.name, source, option, write, result] as const),
  );
  test.each(rows)("%s from %s", async (_, __, option, write, result) => {
    const script = [
      "CONTENT=$(mktemp -p .); rm -f fifo; mkfifo fifo",
      `printf %s ${quoted(option.content)} > $CONTENT`,
      write(option),
    ].join("\n");
    const { exitCode, stdout, stderr } = await runAs(who, script);
    const text = stdout + stderr;
    if (result === "arrives") {
      expect({ exitCode, text }).toEqual({ exitCode: 0, text: expect.stringMatching(patternOf(option)) });
    } else {
      expect(text).not.toContain(option.arrives);
      if (result === "nothing") expect({ exitCode, text }).toMatchObject({ exitCode: option.ofNothing });
      else expect({ exitCode, text }).not.toMatchObject({ exitCode: 0 });
    }
  });

  const typed = options.filter(({ name }) => !/^run (-d|--script)/.test(name));
  test.each(typed)("$name from a terminal", async (option) => {
    const files = `printf %s ${quoted(given(option, stdin(option)))} > typed.sh; printf %s ${quoted(option.content)} > typed`;
    // The terminal takes Ctrl-D for the end of the input.
    const script = `${files}; { cat typed; printf '\\n\\004'; } | CI=1 script -qec 'bash typed.sh' /dev/null`;
    const { exitCode, stdout } = await runAs(who, script);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(patternOf(option)) });
  });

  test("standard input is one thing; a pipe that is named twice is read once", async () => {
    const context = "tar -C context -c . | bough build --docker --secret id=t,src=/dev/stdin -";
    expect(await runAs(who, context)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("standard input is the build context, and can't be this, too"),
    });
    const script = "echo A=1 | bough run --script - --env-file /dev/stdin busybox:1";
    expect(await runAs(who, script)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("standard input is the input of the command, and can't be this, too"),
    });
    const twice = "bough run --env-file /dev/fd/7 --env-file /dev/fd/7 busybox:1 env 7< <(echo A=1)";
    expect(await runAs(who, twice)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("A=1\n"),
    });
  });

  test("a wait for a pipe ends with the process", async () => {
    const script =
      "rm -f fifo; mkfifo fifo; bough run --env-file fifo busybox:1 true & exec 9> fifo; kill $!; wait $!";
    expect(await runAs(who, script)).toMatchObject({ exitCode: 130, stderr: "[ERROR] interrupted\n" });
  });

  test.each(onInput)("$name", async ({ content, line, arrives, ofNothing }) => {
    const command = line.replace("INPUT", "-");
    const { exitCode, stderr } = await runAs(who, `${content} | { ${command}; }`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining(arrives) });
    for (const nothing of ["</dev/null", "<&-"])
      expect(await runAs(who, `{ ${command}; } ${nothing}`)).toMatchObject({ exitCode: ofNothing });
  });
});
