/** `--ssh ID=KEY,...`: an agent of the build, with keys that OpenSSH has made and asks it for. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openKeyAgent } from "../../src/cli/builds/ssh/key-agent.ts";
import { readPrivateKey } from "../../src/cli/builds/ssh/private-key.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { addPerl } from "../support/perl-files.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const temporary = join(places, "t");
const environment = { BOUGH_HOME: temporaryDirectory(), TMPDIR: temporary, PATH: process.env.PATH ?? "" };
const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: places, environment });

function sh(command: string, variables: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout } = Bun.spawnSync(["sh", "-c", command], {
    cwd: places,
    env: { ...environment, ...variables },
  });
  return { exitCode, stdout: stdout.toString() };
}

/** Each kind of key and file, as OpenSSH's and OpenSSL's options make it. */
const kinds: Readonly<Record<string, string>> = {
  ed25519: "-t ed25519",
  rsa: "-t rsa -b 2048",
  "rsa-3072": "-t rsa -b 3072",
  "rsa-pem": "-t rsa -b 2048 -m PEM",
  "rsa-pkcs8": "-t rsa -b 2048 -m PKCS8",
  "ecdsa-256": "-t ecdsa -b 256",
  "ecdsa-384": "-t ecdsa -b 384",
  "ecdsa-521": "-t ecdsa -b 521",
  "ecdsa-pem": "-t ecdsa -m PEM",
};

beforeAll(async () => {
  mkdirSync(temporary);
  for (const [name, options] of Object.entries(kinds))
    expect(sh(`ssh-keygen -q -N '' -C none -f ${name} ${options}`).exitCode).toBe(0);
  expect(
    sh("ssh-keygen -q -N secret -t ed25519 -f locked; ssh-keygen -q -N secret -m PEM -t rsa -f locked-pem")
      .exitCode,
  ).toBe(0);
  expect(sh("ssh-keygen -q -N secret -m PKCS8 -t rsa -f locked-pkcs8").exitCode).toBe(0);
  writeFiles(places, {
    none: "nothing\n",
    damaged: readFileSync(join(places, "ed25519"), "utf8").replace(/^.*\n-----END/m, "-----END"),
  });
  const layout = await makeBusyboxLayout(temporaryDirectory(), { prepare: addPerl });
  expect((await bough("images", "import", layout, "--tag", "base:1")).exitCode).toBe(0);
});
afterAll(() => {
  for (const each of [places, environment.BOUGH_HOME]) rmSync(each, { recursive: true, force: true });
});

test("OpenSSH lists the keys of the agent and believes its signatures; it takes no other key, and removes none", async () => {
  const names = Object.keys(kinds);
  const keys = names.map((name) => readPrivateKey(readFileSync(join(places, name), "latin1")));
  using agent = await openKeyAgent(keys, environment);
  const ask = (command: string) =>
    Bun.spawn(["sh", "-c", command], {
      cwd: places,
      env: { ...environment, SSH_AUTH_SOCK: agent.path },
      stderr: "ignore",
    });
  const listed = await new Response(ask("ssh-add -L").stdout).text();
  const publicKeys = names.map((name) =>
    readFileSync(join(places, `${name}.pub`), "utf8")
      .split(" ")
      .slice(0, 2)
      .join(" "),
  );
  expect(
    listed
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== ""),
  ).toEqual(publicKeys);
  for (const name of names) expect([name, await ask(`ssh-add -T ${name}.pub`).exited]).toEqual([name, 0]);
  for (const hash of ["sha256", "sha512"])
    expect(await ask(`echo text | ssh-keygen -Y sign -O hashalg=${hash} -n file -f rsa.pub >&2`).exited).toBe(
      0,
    );
  expect(await ask("ssh-add -q ed25519").exited).not.toBe(0);
  await ask("ssh-add -q -D").exited;
  expect(await new Response(ask("ssh-add -L").stdout).text()).toBe(listed);
});

/** Asks the agent for its keys, and prints their number. */
const count = `perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un($ENV{SSH_AUTH_SOCK})) or die "$!"; syswrite(S, pack("NC", 1, 11)); sysread(S, $a, 9); print unpack("x5N", $a), " keys\\n"'`;

describe("a build", () => {
  const build = (dockerfile: string, ...options: string[]) => {
    writeFiles(places, { "context/Dockerfile": `FROM base:1\n${dockerfile}\n` });
    return bough("build", "context", "--docker", "--no-cache", "--progress", "plain", ...options);
  };

  test("has the agents for its RUNs and for git, and leaves none behind", async () => {
    copyFileSync(join(places, "ed25519"), join(places, "readable"));
    const mounts = `RUN --mount=type=ssh ${count}\nRUN --mount=type=ssh,id=deploy ${count}`;
    const { exitCode, stderr } = await build(
      mounts,
      "--ssh",
      "default=readable,rsa",
      "--ssh",
      `deploy=${places}/ecdsa-521`,
    );
    expect(stderr).toContain("2 keys\n");
    expect(stderr).toContain("1 keys\n");
    expect(exitCode).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
    // git's ssh is asked to sign with the key.
    const bin = temporaryDirectory();
    writeFiles(bin, {
      ssh: {
        text: `#!/bin/sh\nssh-add -T ${places}/ed25519.pub && echo signed > ${places}/signed\nexit 1\n`,
        mode: 0o755,
      },
    });
    writeFiles(places, { "context/Dockerfile": "FROM base:1\nADD git@somewhere:x.git /x\n" });
    await runBough(["--local", "build", "context", "--docker", "--ssh", "default=ed25519"], {
      workingDirectory: places,
      environment: { ...environment, PATH: `${bin}:${environment.PATH}` },
    });
    expect(readFileSync(join(places, "signed"), "utf8")).toBe("signed\n");
    expect(readdirSync(temporary)).toEqual([]);
  });

  test.each([
    ["locked", "cannot use locked as a key: its private key is protected by a passphrase"],
    ["locked-pem", "cannot use locked-pem as a key: its private key is protected by a passphrase"],
    ["locked-pkcs8", "cannot use locked-pkcs8 as a key: its private key is protected by a passphrase"],
    ["none", "cannot use none as a key: it has no private key"],
    ["ed25519.pub", "cannot use ed25519.pub as a key: it has no private key"],
    ["damaged", "cannot use damaged as a key: its private key can't be read"],
    ["missing", "missing: no such file"],
    ["context", "cannot read context: it is a directory"],
    ["ed25519,missing", "cannot read missing: no such file"],
  ])("with --ssh default=%s is refused before anything runs", async (paths, message) => {
    const { exitCode, stderr } = await build(`RUN --mount=type=ssh ${count}`, "--ssh", `default=${paths}`);
    expect(stderr).toContain("[ERROR] --ssh default: ");
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("keys");
    expect(exitCode).toBe(2);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
