/** `bough build` on the embedded engine: real containers, inspected by the RUNs themselves. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { commandLines } from "../support/processes.ts";

const environment = { BOUGH_HOME: "" };
beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory(), {
    environment: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "FROM_IMAGE=yes"],
  });
  const imported = await runBough(["--local", "images", "import", layout, "--tag", "busybox:1"], {
    workingDirectory: "/",
    environment,
  });
  expect(imported.exitCode).toBe(0);
});

const build = (context: string, ...options: string[]) =>
  runBough(["--local", "build", ".", ...options], { workingDirectory: context, environment });

function makeContext(dockerfile: string, files: Record<string, FileSpec> = {}): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: `FROM busybox:1\n${dockerfile}`, ...files });
  return context;
}

describe("a RUN has", () => {
  test.each<[string, string, Record<string, FileSpec>, string]>([
    [
      "the variables of the image and of the Dockerfile",
      "ENV A=1 B=two\nRUN echo $A $B $FROM_IMAGE",
      {},
      "1 two yes",
    ],
    ["build arguments as variables", "ARG A=1\nRUN env | grep ^A=", {}, "A=1"],
    [
      "its working directory, which is made if it is missing",
      "WORKDIR /a/b\nWORKDIR c\nRUN pwd",
      {},
      "/a/b/c",
    ],
    [
      "files with their modes",
      "COPY run.sh /bin/\nRUN run.sh",
      { "run.sh": { text: "#!/bin/sh\necho ran", mode: 0o755 } },
      "ran",
    ],
    [
      "files with the owner and mode of the COPY",
      "COPY --chown=12:34 --chmod=604 a /x/a\nRUN stat -c '%u %g %a' /x/a",
      { a: "a" },
      "12 34 604",
    ],
    [
      "owners by the image's names",
      "RUN echo app:x:1234:1235::/:/bin/sh >> /etc/passwd\nCOPY --chown=app a /x/a\nRUN stat -c '%u %g %U' /x/a",
      { a: "a" },
      "1234 1235 app",
    ],
    [
      "a directory's contents",
      "COPY d /x\nRUN cd /x && find . -type f | sort | tr '\\n' ' '",
      { "d/a": "", "d/e/b": "" },
      "./a ./e/b ",
    ],
    [
      "links, empty directories and their modes",
      "COPY d /x\nRUN cd /x && readlink link && stat -c %a private && ls -A empty private",
      { "d/link": { link: "no where" }, "d/empty": "directory/", "d/private/.keep": "" },
      "no where\n755\nempty:\n\nprivate:\n.keep",
    ],
    ["an existing directory as the destination", "COPY a /bin\nRUN cat /bin/a", { a: "copied" }, "copied"],
    [
      "the user by name",
      'RUN echo app:x:1000:1000::/:/bin/sh >> /etc/passwd\nUSER app\nRUN echo $(id -un) "it\'s"',
      {},
      "app it's",
    ],
    ["the user by number", "USER 1000:50\nRUN id -u; id -g", {}, "1000\n50"],
    ["the exec form without a shell", 'RUN ["echo", "a  b", "$(id)"]', {}, "a  b $(id)"],
    [
      "the shell's loops and substitutions",
      "RUN for i in 1 2 3; do n=$((n+i)); done; echo $n $(echo sub)",
      {},
      "6 sub",
    ],
    ["here-documents", "RUN <<END\necho one\necho two\nEND", {}, "one\ntwo"],
    ["a here-document that is a program", "RUN <<END\n#!/bin/awk -f\nBEGIN { print 6 * 7 }\nEND", {}, "42"],
    [
      "a file from a here-document",
      "ARG NAME=me\nCOPY <<END /etc/greeting\nhello $NAME\nEND\nRUN cat /etc/greeting",
      {},
      "hello me",
    ],
    [
      "the files of an earlier RUN",
      "RUN echo x > /left\nRUN cat /left && rm /left\nRUN test -e /left || echo gone",
      {},
      "gone",
    ],
    [
      "file names with spaces and non-ASCII letters",
      'COPY ["a b", "ü", "/x/"]\nRUN cd /x && echo *',
      { "a b": "", ü: "" },
      "a b ü",
    ],
    [
      "the same value of a variable in every place",
      "ARG V\nENV V=environment\nRUN echo $V $(sh -c 'echo $V') ${V#x}",
      {},
      "supplied supplied supplied",
    ],
    ["words split by IFS", 'ENV LIST=a,b\nRUN IFS=,; for i in $LIST; do echo "$i"; done', {}, "a\nb"],
    [
      "its output shown without a change of bytes",
      "RUN printf 'a\\303\\274\\n' ; printf '\\377' | od -An -tx1",
      {},
      "aü\n ff",
    ],
  ])("%s", async (_, dockerfile, files, expected) => {
    const { stderr, exitCode } = await build(makeContext(dockerfile, files), "--build-arg", "V=supplied");
    const outputs = stderr.split("[INFO] stdout:\n");
    expect({ exitCode, last: outputs.at(-1)?.replace(/\n(\[\w+\][^\n]*\n?)*$/, "") }).toEqual({
      exitCode: 0,
      last: expected,
    });
  });
});

test("a second build runs nothing and has the same image; a changed file runs only the steps after it", async () => {
  const context = makeContext("RUN echo one\nCOPY a /a\nRUN cat /a", { a: "first" });
  const first = await build(context, "-q", "--tag", "app:1");
  const second = await build(context, "--tag", "app:1");
  expect(second.stderr).not.toContain("spawned");
  expect(second.stdout).toContain(first.stdout.trim());
  writeFileSync(join(context, "a"), "second");
  const third = await build(context);
  expect(third.stderr.match(/spawned/g)).toHaveLength(2);
  expect(third.stderr).toContain("second");
});

test("a failed RUN shows its output, and the layers before it stay cached", async () => {
  const context = makeContext("RUN echo fine\nRUN echo out; sleep 0.2; echo err >&2; exit 7\n");
  const failed = await build(context, "--tag", "never:1");
  expect(failed.exitCode).toBe(1);
  expect(failed.stdout).toBe("");
  expect(failed.stderr).toContain("[INFO] stdout:\nout\nerr\n");
  expect(failed.stderr).toContain("[ERROR] Dockerfile:3: the command failed with exit code 7");
  writeFiles(context, { Dockerfile: "FROM busybox:1\nRUN echo fine\nRUN true\n" });
  const mended = await build(context);
  expect(mended.exitCode).toBe(0);
  expect(mended.stderr).toContain("] cached layer:");
  const images = await runBough(["--local", "images", "-f", "json"], { workingDirectory: "/", environment });
  expect(images.stdout).not.toContain("never:1");
});

describe("an entry that can't be placed is an error of the line that staged it:", () => {
  const layers = "RUN mkdir -p /d/link /d/file && echo > /f\n";
  test.each<[string, string, number, string]>([
    [
      "a directory where the image has a file",
      "COPY with-link/empty /f/empty\n",
      3,
      "cannot make the directory /f/empty: /f in the image is not a directory",
    ],
    [
      "a link where the image has a directory",
      "COPY other /other\nCOPY with-link /d\nCOPY other /another\n",
      4,
      "cannot make the link /d/link: there is a directory in the image",
    ],
    [
      "a file where the image has a directory",
      "COPY other /other\nCOPY with-file /d\n",
      4,
      "cannot put a file at /d/file: there is a directory in the image",
    ],
    [
      "a file below a file of the image",
      "COPY with-file /f\nWORKDIR /other\n",
      3,
      "cannot make the directory /f: /f in the image is not a directory",
    ],
  ])("%s", async (_, dockerfile, line, message) => {
    const files: Record<string, FileSpec> = {
      "with-link/link": { link: "file" },
      "with-link/empty": "directory/",
      "with-file/file": "",
      other: "",
    };
    const failed = await build(makeContext(`${layers}${dockerfile}RUN cat /d/file /f/file\n`, files));
    const [error = ""] = failed.stderr.split("[ERROR] ").slice(1);
    expect(error).toStartWith(`Dockerfile:${line}: `);
    expect(error).toContain(message);
    expect(failed.stderr).not.toContain("stderr:");
    expect(failed.exitCode).toBe(1);
  });
});

test("a RUN that takes too long is stopped, with its processes in the background", async () => {
  const failed = await build(makeContext("RUN sleep 98761 & sleep 98762\n"), "--timeout", "1");
  expect(failed.exitCode).toBe(1);
  expect(failed.stderr).toContain("the command was stopped after 1 second (");
  expect(commandLines().filter((line) => /^sleep 9876[12]$/.test(line))).toEqual([]);
});

test("the error of a base image that can't be imported names the image", async () => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM localhost:1/no/such:image\n" });
  const failed = await build(context);
  expect(failed.exitCode).toBe(1);
  expect(failed.stderr).toContain("localhost:1/no/such:image");
});

test("a base image's WORKDIR, USER and ENV apply; its SHELL and triggers do not, which causes warnings", async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory(), {
    environment: ["PATH=/usr/bin:/bin", "OWN=value"],
    workingDirectory: "/srv/app",
    configuration: { User: "1000:50", Shell: ["/bin/ash", "-ec"], OnBuild: ["RUN make"] },
  });
  const words = ["--local", "images", "import", layout, "--tag", "configured:1"];
  expect((await runBough(words, { workingDirectory: "/", environment })).exitCode).toBe(0);
  const context = temporaryDirectory();
  writeFiles(context, {
    Dockerfile: 'FROM configured:1\nENV PATH="/x:$PATH"\nRUN echo $(pwd) $(id -u) $OWN $PATH\n',
  });
  const built = await build(context);
  expect(built.stderr).toContain("[INFO] stdout:\n/srv/app 1000 value /x:/usr/bin:/bin\n");
  expect(built.stderr).toContain("[WARN] line 1: configured:1: its trigger ONBUILD RUN make is not run");
  expect(built.stderr).toContain('[WARN] line 1: configured:1: its SHELL ["/bin/ash","-ec"] is not used');
});

test("a copied file keeps its time, which is not part of the chain hash", async () => {
  const context = makeContext("COPY a /a\nRUN stat -c %Y /a\n", { a: "timed" });
  utimesSync(join(context, "a"), 1_000_000_000, 1_000_000_000);
  expect((await build(context)).stderr).toContain("\n1000000000\n");
  utimesSync(join(context, "a"), 1_100_000_000, 1_100_000_000);
  const again = await build(context);
  expect(again.stderr).toContain("2 of 2 layers cached");
});

test("--metadata-file has the bytes that each layer adds to the image, cached or not", async () => {
  const dockerfile = "COPY a /a\nRUN head -c 300000 /dev/urandom > /big\nRUN rm /a\nRUN true\nCOPY a /b\n";
  const context = makeContext(dockerfile, { a: "x".repeat(5000) });
  for (const times of ["first", "second"]) {
    const { exitCode, stderr } = await build(context, "--docker", "--metadata-file", "../m.json");
    expect({ times, exitCode, stderr }).toMatchObject({ times, exitCode: 0 });
    const { steps } = JSON.parse(readFileSync(join(context, "../m.json"), "utf8"));
    const added = steps.map(({ addedBytes }: { addedBytes: number | null }) => addedBytes);
    const [from, copy, big, removed, nothing, last] = added;
    expect({ from, nothing, steps: added.length }).toEqual({ from: null, nothing: 0, steps: 6 });
    for (const copied of [copy, last]) expect(copied).toBeWithin(5000, 17_000);
    expect(big).toBeWithin(300_000, 325_000);
    expect(removed).toBeWithin(0, 9000);
  }
});

test.each([
  ["a /link/a", "/link is a link, which is followed, as in Docker's own builder"],
  ["a /link/", "/link is a link, which is followed"],
  ["a /real", "/real is a directory, so the file is put into it"],
  ["--from=other:1 /bin/busybox /link/d/busybox", "/link is a link, which is followed"],
  ["a /real/", undefined],
  ["d /real", undefined],
  ["a /made/a", undefined],
])("COPY --link %s warns if Docker's builder would place the file elsewhere", async (words, warning) => {
  const dockerfile = `RUN mkdir /real && ln -s /real /link\nCOPY --link ${words}\n`.replace(
    "other:1",
    "busybox:1",
  );
  const context = makeContext(dockerfile, { a: "a\n", "d/b": "b\n" });
  const linked = await build(context, "--docker");
  expect(linked.exitCode).toBe(0);
  if (warning === undefined) expect(linked.stderr).not.toContain("--link:");
  else expect(linked.stderr).toContain(`--link: ${warning}`);
  writeFiles(context, { Dockerfile: `FROM busybox:1\n${dockerfile.replace("--link ", "")}` });
  expect((await build(context, "--docker")).stderr).not.toContain("--link:");
});
