/** The promises of the table in `test/README.md`, each written once, for every place. */
import { expect } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemplate, serveRepositories } from "../support/git-server.ts";
import { Registry } from "../support/registry.ts";
import { type Place, run } from "./place.ts";

/** What a promise is tried with. */
interface Trial {
  place: Place;
  /** Differs in each trial: no other one has steps with it. */
  word: string;
}

/** A RUN whose result differs each time that it is run. */
const marks = (word: string) => `RUN echo ${word} > /dev/null; cat /proc/sys/kernel/random/uuid | tee /mark`;

export const promises: Readonly<Record<string, (trial: Trial) => Promise<void>>> = {
  async "first build"({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\nCOPY a.txt /srv/\nRUN tr a-z A-Z < /srv/a.txt > /srv/upper\n`,
      "a.txt": `${word}\n`,
    });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    expect(await read(place, `${word}:1`, "/srv/upper")).toBe(`${word.toUpperCase()}\n`);
  },

  async "cached build"({ place, word }) {
    const directory = place.makeDirectory({ Dockerfile: `FROM ${place.base}\n${marks(word)}\n` });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    const mark = await read(place, `${word}:1`, "/mark");
    await succeed(place, directory, ["build", "-t", `${word}:2`, "."]);
    expect(await read(place, `${word}:2`, "/mark")).toBe(mark);
    await succeed(place, directory, ["build", "--no-cache", "-t", `${word}:3`, "."]);
    expect(await read(place, `${word}:3`, "/mark")).not.toBe(mark);
  },

  async "one file changed"({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\n${marks(word)}\nCOPY a.txt b.txt /srv/\nRUN cat /srv/* > /all\n`,
      "a.txt": "a\n",
      "b.txt": "b\n",
    });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    const mark = await read(place, `${word}:1`, "/mark");
    writeFileSync(join(directory, "b.txt"), "other\n");
    await succeed(place, directory, ["build", "-t", `${word}:2`, "."]);
    expect(await read(place, `${word}:2`, "/mark")).toBe(mark);
    expect(await read(place, `${word}:2`, "/all")).toBe("a\nother\n");
  },

  async "failed step"({ place, word }) {
    const directory = place.makeDirectory({ Dockerfile: `FROM ${place.base}\n${marks(word)}\n` });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    const mark = await read(place, `${word}:1`, "/mark");
    writeFileSync(join(directory, "Dockerfile"), `FROM ${place.base}\nRUN echo why-${word}; exit 3\n`);
    const failed = await run(place, directory, ["build", "-t", `${word}:1`, "."]);
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr).toContain(`why-${word}`);
    expect(failed.stderr).toContain("Dockerfile:2");
    expect(await read(place, `${word}:1`, "/mark")).toBe(mark);
  },

  async "Ctrl-C"({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\nRUN echo ${word} && sleep 300\n`,
    });
    const build = place.start(directory, ["build", "-t", `${word}:1`, "."]);
    await build.untilStderr(`RUN echo ${word} && sleep`);
    build.interrupt();
    expect((await build.ended).exitCode).toBe(130);
    expect((await run(place, directory, ["run", `${word}:1`, "true"])).exitCode).not.toBe(0);
  },

  async tag({ place, word }) {
    const directory = place.makeDirectory({ Dockerfile: `FROM ${place.base}\n${marks(word)}\n` });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "-t", `${word}:2`, "."]);
    await succeed(place, directory, ["tag", `${word}:1`, `${word}:3`]);
    const mark = await read(place, `${word}:1`, "/mark");
    expect(await read(place, `${word}:2`, "/mark")).toBe(mark);
    expect(await read(place, `${word}:3`, "/mark")).toBe(mark);
  },

  async run({ place }) {
    const directory = place.makeDirectory({ input: "from a file" });
    const ended = await run(place, directory, [
      "run",
      place.base,
      "sh",
      "-c",
      "echo out; echo err >&2; exit 7",
    ]);
    expect(ended).toMatchObject({ exitCode: 7, stdout: "out\n" });
    expect(ended.stderr).toContain("err\n");
    const given = await run(place, directory, [
      "run",
      "-F",
      `${place.path("input")}:/in`,
      place.base,
      "cat",
      "/in",
    ]);
    expect(given).toMatchObject({ exitCode: 0, stdout: "from a file" });
  },

  async "input of a run"({ place }) {
    const fed = await run(place, place.makeDirectory({}), ["run", place.base, "cat"], {
      stdin: "by a pipe\n",
    });
    expect(fed).toMatchObject({ exitCode: 0, stdout: "by a pipe\n" });
  },

  async "copy out"({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\nRUN mkdir -p /srv/${word}/deep; echo x > /srv/${word}/deep/f; chmod 640 /srv/${word}/deep/f; yes | head -c 400000 > /srv/${word}/large; chmod 4755 /srv/${word}/large\n`,
    });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    await succeed(place, directory, ["cp", `${word}:1:/srv/${word}`, "out"]);
    expect(readFileSync(join(directory, "out/deep/f"), "utf8")).toBe("x\n");
    expect(readFileSync(join(directory, "out/large"), "utf8")).toBe("y\n".repeat(200_000));
    if (process.platform !== "win32") expect(statSync(join(directory, "out/large")).mode & 0o7000).toBe(0);
  },

  async export({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base} AS made\n${marks(word)}\nFROM scratch\nCOPY --from=made /mark /mark\n`,
    });
    await succeed(place, directory, ["build", "-o", "out", "."]);
    const mark = readFileSync(join(directory, "out/mark"), "utf8");
    await succeed(place, directory, ["build", "-t", `${word}:1`, "--target", "made", "."]);
    expect(await read(place, `${word}:1`, "/mark")).toBe(mark);
    await succeed(place, directory, [
      "images",
      "export",
      `${word}:1`,
      `docker-archive:${place.path("image.tar")}`,
    ]);
    const archive = new Bun.Archive(await Bun.file(join(directory, "image.tar")).bytes());
    const manifest = JSON.parse((await (await archive.files()).get("manifest.json")?.text()) ?? "");
    expect(manifest).toMatchObject([{ RepoTags: [`${word}:1`] }]);
  },

  async push({ place, word }) {
    const registry = await Registry.start();
    try {
      const directory = place.makeDirectory({ Dockerfile: `FROM ${place.base}\n${marks(word)}\n` });
      const name = `${registry.host}/${word}:1`;
      await succeed(place, directory, ["build", "-t", name, "--push", "."]);
      const pulled = join(directory, "pulled");
      const copy = Bun.spawnSync([
        "skopeo",
        "copy",
        "--src-tls-verify=false",
        `docker://${name}`,
        `oci:${pulled}:1`,
      ]);
      expect([copy.exitCode, copy.stderr.toString()]).toEqual([0, ""]);
    } finally {
      await registry.stop();
    }
  },

  async secrets({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: [
        `FROM ${place.base}`,
        "RUN --mount=type=secret,id=file cat /run/secrets/file | rev > /file",
        "RUN --mount=type=secret,id=variable,env=V echo $V | rev > /variable",
        "RUN --mount=type=secret,id=input,required cat /run/secrets/input | rev > /input",
        "",
      ].join("\n"),
      token: `of a file ${word}\n`,
    });
    const secrets = ["id=file,src=token", "id=variable,env=MINE", "id=input,src=/dev/stdin"];
    const words = ["build", ...secrets.flatMap((secret) => ["--secret", secret]), "-t", `${word}:1`, "."];
    await succeed(place, directory, words, {
      stdin: `by a pipe ${word}\n`,
      environment: { MINE: `mine ${word}` },
    });
    const reversed = (text: string) => `${[...text].reverse().join("")}\n`;
    expect(await read(place, `${word}:1`, "/file")).toBe(reversed(`of a file ${word}`));
    expect(await read(place, `${word}:1`, "/variable")).toBe(reversed(`mine ${word}`));
    expect(await read(place, `${word}:1`, "/input")).toBe(reversed(`by a pipe ${word}`));
  },

  async ".dockerignore"({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\nCOPY . /ctx\nRUN echo ${word}; cd /ctx && find . -type f | sort > /list\n`,
      ".dockerignore": "*.pem\nsecrets/*\n!secrets/public\n.dockerignore\n",
      "a.pem": "",
      "b.txt": "",
      "secrets/key": "",
      "secrets/public": "",
    });
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    expect(await read(place, `${word}:1`, "/list")).toBe("./Dockerfile\n./b.txt\n./secrets/public\n");
  },

  async "git context"({ place, word }) {
    const files = { Dockerfile: `FROM ${place.base}\nCOPY word /\n`, word };
    const server = serveRepositories(makeTemplate(files).root);
    try {
      const url = `${server.url}/app.git#v1`;
      await succeed(place, place.makeDirectory({}), ["build", "-t", `${word}:1`, url]);
      expect(await read(place, `${word}:1`, "/word")).toBe(word);
    } finally {
      await server.stop();
    }
  },

  async "URL context"({ place, word }) {
    const body = await contextArchive(place, word);
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(body) });
    try {
      const url = `http://127.0.0.1:${server.port}/context.tar`;
      await succeed(place, place.makeDirectory({}), ["build", "-t", `${word}:1`, url]);
      expect(await read(place, `${word}:1`, "/word")).toBe(word);
    } finally {
      await server.stop(true);
    }
  },

  async "stdin context"({ place, word }) {
    const directory = place.makeDirectory({ word });
    const stdin = await contextArchive(place, word);
    await succeed(place, directory, ["build", "-t", `${word}:1`, "-"], { stdin });
    expect(await read(place, `${word}:1`, "/word")).toBe(word);
    const dockerfile = `FROM ${place.base}\nCOPY word /other\n`;
    await succeed(place, directory, ["build", "-t", `${word}:2`, "-f", "-", "."], { stdin: dockerfile });
    expect(await read(place, `${word}:2`, "/other")).toBe(word);
  },

  async bake({ place, word }) {
    const target = (number: number) => ({
      context: ".",
      tags: [`${word}:${number}`],
      args: { NUMBER: `${number}` },
    });
    const definition = JSON.stringify({
      group: { default: { targets: ["one", "two"] } },
      target: { one: target(1), two: target(2) },
    });
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\nARG NUMBER\nRUN echo ${word} $NUMBER > /number\n`,
      "docker-bake.json": definition,
    });
    await succeed(place, directory, ["bake"]);
    expect(await read(place, `${word}:2`, "/number")).toBe(`${word} 2\n`);
    writeFileSync(join(directory, "docker-bake.json"), "not this one");
    const stdin = definition.replaceAll(`${word}:`, `${word}-piped:`);
    await succeed(place, directory, ["bake", "-f", "-", "two"], { stdin });
    expect(await read(place, `${word}-piped:2`, "/number")).toBe(`${word} 2\n`);
  },

  async lock({ place, word }) {
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(word) });
    try {
      const directory = place.makeDirectory({
        Dockerfile: `FROM scratch\nLABEL word=${word}\nADD http://127.0.0.1:${server.port}/f /f\n`,
      });
      await succeed(place, directory, ["build", "--lock", "bough.lock", "-t", `${word}:1`, "."]);
      await succeed(place, directory, ["build", "--lock", "bough.lock", "--locked", "-t", `${word}:2`, "."]);
      server.reload({ fetch: () => new Response("changed") });
      const refused = await run(place, directory, [
        "build",
        "--no-cache",
        "--lock",
        "bough.lock",
        "--locked",
        ".",
      ]);
      expect(refused.exitCode).toBe(1);
    } finally {
      await server.stop(true);
    }
  },

  async "past builds"({ place, word }) {
    const directory = place.makeDirectory({ Dockerfile: `FROM ${place.base}\n${marks(word)}\n` });
    const build = ["build", "-t", `${word}:1`, "."];
    await succeed(place, directory, build);
    await succeed(place, directory, build);
    writeFileSync(join(directory, "Dockerfile"), `FROM ${place.base}\nRUN echo why-${word}; exit 3\n`);
    await run(place, directory, build);
    const list = await succeed(place, directory, ["history", "ls", "--name", word, "-f", "json"]);
    const builds: { id: string; status: string; cached: number; layers: number }[] = JSON.parse(list.stdout);
    expect(builds.map(({ status, cached, layers }) => [status, `${cached}/${layers}`])).toEqual([
      ["failed", "0/1"],
      ["succeeded", "1/1"],
      ["succeeded", "0/1"],
    ]);
    const [failed = "", cached = "", first = ""] = builds.map(({ id }) => id);
    const { stdout: log } = await succeed(place, directory, ["history", "logs", failed, "2"]);
    expect(log).toBe(`why-${word}\n`);
    const { stdout: table } = await succeed(place, directory, ["history", "diff", first, cached]);
    expect(table).toContain(`after   ${cached}`);
    await succeed(place, directory, ["history", "report", failed, "-o", place.path("page.html")]);
    const page = readFileSync(join(directory, "page.html"), "utf8");
    expect(page).toContain("What went wrong");
    expect(page).toContain(`why-${word}</pre>`);
  },

  async "completion of an interrupted build"({ place, word }) {
    const directory = place.makeDirectory({
      Dockerfile: `FROM ${place.base}\n${marks(word)}\nRUN echo ${word} && sleep 300\n`,
    });
    const build = place.start(directory, ["build", "-t", `${word}:1`, "."]);
    await build.untilStderr(`RUN echo ${word} && sleep`);
    build.kill();
    const { stderr } = await build.ended;
    writeFileSync(join(directory, "Dockerfile"), `FROM ${place.base}\n${marks(word)}\nRUN true\n`);
    await succeed(place, directory, ["build", "-t", `${word}:1`, "."]);
    const mark = await read(place, `${word}:1`, "/mark");
    expect(stderr).toContain(mark.trim());
  },
};

async function succeed(
  place: Place,
  ...given: Parameters<typeof run> extends [Place, ...infer Rest] ? Rest : never
) {
  const ended = await run(place, ...given);
  if (ended.exitCode !== 0)
    throw new Error(`${given[1].join(" ")}: exit code ${ended.exitCode}\n${ended.stdout}${ended.stderr}`);
  return ended;
}

/** Returns the text of an image's file. */
async function read(place: Place, image: string, path: string): Promise<string> {
  return (await succeed(place, place.makeDirectory({}), ["run", image, "cat", path])).stdout;
}

async function contextArchive(place: Place, word: string): Promise<Uint8Array> {
  return new Bun.Archive({ Dockerfile: `FROM ${place.base}\nCOPY word /\n`, word }).bytes();
}
