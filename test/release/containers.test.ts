/** Builds in containers, in those rows of the table in the manual that Docker can start here, and what other containers are told. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "../../scripts/packaging/run-program.ts";
import { topics } from "../../src/cli/help/topics.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { type Docker, type Ended, startDocker } from "../support/docker.ts";
import { containerRows, engineImage, importEngineImage } from "../support/engine-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

const manual = topics.ci?.markdown ?? "";
const place = temporaryDirectory("bough-containers-");
const work = join(place, "work");

let docker: Docker;
let registry: Registry;
let notes: Bun.Server<undefined>;

beforeAll(async () => {
  mkdirSync(work);
  // Other users read the contexts.
  chmodSync(place, 0o755);
  cpSync(join(import.meta.dir, "../../scripts/example"), join(work, "example"), { recursive: true });
  writeFiles(join(work, "app"), {
    Dockerfile: [
      "FROM base AS made",
      "RUN --mount=type=cache,target=/kept echo more >> /kept/lines; wc -l < /kept/lines",
      "RUN echo app:x:1000:1000::/:/bin/sh >> /etc/passwd; mkdir -p /srv/app && chown 1000 /srv/app && chown 65534 /srv",
      "USER app",
      "RUN id -u > /srv/app/user; kill -9 1 2>&1; cat /proc/self/status > /srv/app/status",
      "FROM base",
      "COPY --from=made /srv /srv",
      "COPY Dockerfile /srv/",
      "",
    ].join("\n"),
  });
  for (const name of ["one", "other"])
    writeFiles(join(work, name), {
      Dockerfile: `FROM base\nRUN echo shared > /shared\nRUN echo ${name} > /own\n`,
    });
  await makeBusyboxLayout(join(work, "base"));
  notes = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("one\ntwo\n") });
  [registry, docker] = await Promise.all([Registry.start(), startDocker(join(place, "docker"))]);
  await importEngineImage(docker, place);
}, 120_000);
afterAll(async () => {
  await Promise.all([docker.close(), registry.stop(), notes.stop(true)]);
});

/** Runs a shell script in a container on this machine's network, with flags of `docker run`. */
async function inContainer(flags: string, script: string): Promise<Ended> {
  const mounts = ["-v", `${compileBough()}:/usr/local/bin/bough:ro`, "-v", `${work}:/work:ro`];
  const words = [
    "run",
    "--rm",
    "--network=host",
    ...flags.split(/\s+/).filter((word) => word !== ""),
    ...mounts,
    engineImage,
  ];
  return docker.client([...words, "sh", "-euc", script]);
}

const build = "bough build --docker --progress plain --build-context base=oci-layout:///work/base";

/** What `--privileged` gives a container, where this machine lacks a capability that Docker would give, too. */
const nearlyPrivileged =
  "--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined --device /dev/net/tun -v /sys/fs/cgroup:/sys/fs/cgroup";

const rows = containerRows();
const hidden = (rows.get("user") ?? "").replace("--security-opt systempaths=unconfined", "");

test("the manual has a row for each way to build", () => {
  expect([...rows.keys()]).toEqual(["user", "root", "privileged"]);
});

describe.each([
  ["user", "user", rows.get("user") ?? ""],
  ["user", "user, with parts of /proc hidden", hidden],
  ["root", "root, with a root that is read-only", `${rows.get("root")} --read-only`],
  ["privileged", "privileged", rows.get("privileged") ?? ""],
  [
    "user",
    "user, with two capabilities",
    `${rows.get("user")} --cap-drop ALL --cap-add SETUID --cap-add SETGID`,
  ],
  [
    "root",
    "root, with three capabilities",
    `${rows.get("root")} --cap-drop ALL --cap-add SETUID --cap-add SETGID --cap-add SETFCAP`,
  ],
])("in row %s (%s)", (row, title, given) => {
  const volume = `row-${title.replace(/\W+/g, "-")}`;
  let flags = `-v ${volume}:/home/bough ${given}`;

  test("the example is built; an image is pushed, and a second container finds its steps", async () => {
    const isGranted = (await inContainer(flags, "true")).exitCode === 0;
    if (!isGranted) flags = flags.replace("--privileged", nearlyPrivileged);
    const tag = `${registry.host}/${volume}:1`;
    const app = `${build} app --tag ${tag} --push`;
    const example = `bough build --docker --build-arg BASE=base --build-context base=oci-layout:///work/base --build-arg NOTES_URL=http://127.0.0.1:${notes.port}/notes example`;
    const first = await inContainer(flags, `${example}; ${app}; bough doctor -f json`);
    expect(first.exitCode === 0 || first.stderr).toBe(true);
    const { checks } = JSON.parse(first.stdout.slice(first.stdout.indexOf("{\n")));
    expect(checks).toContainEqual(
      expect.objectContaining({ check: "container", detail: expect.stringContaining(`in row "${row}"`) }),
    );
    const second = await inContainer(flags, app);
    expect(second.exitCode === 0 || second.stderr).toBe(true);
    expect(second.stderr).not.toContain("RUN spawned");
    expect(second.stderr.match(/cached layer:\w+ (RUN|COPY)/g)).toHaveLength(5);
    const config = JSON.parse(
      runProgram(["skopeo", "inspect", "--config", "--tls-verify=false", `docker://${tag}`]),
    );
    expect(config.rootfs.diff_ids).toHaveLength(3);
  }, 60_000);

  test("what comes from pipes and here-documents arrives", async () => {
    const dockerfile = "FROM base\nRUN --mount=type=secret,id=t,required wc -c < /run/secrets/t\n";
    const lines = [
      `printf '${dockerfile}' | ${build} --secret id=t,src=/dev/fd/7 --dockerfile - one 7<<X`,
      ...["six", "X"],
      `printf '${dockerfile}' | ${build} --secret id=t,src=one/Dockerfile -`,
      `printf '{"target": {"default": {"context": "one", "contexts": {"base": "oci-layout:///work/base"}}}}' |`,
      "bough bake --progress plain -f -",
    ];
    const { exitCode, stderr } = await inContainer(flags, lines.join("\n"));
    expect(exitCode === 0 || stderr).toBe(true);
    expect(stderr).toMatch(/^4$/m);
    expect(stderr).toContain("came from standard input");
    expect(stderr).toContain("RUN echo one");
  }, 60_000);
});

describe("in row user", () => {
  const flags = `-v shared:/home/bough ${rows.get("user")}`;

  test("two containers build with one state at the same time", async () => {
    const [one, other] = await Promise.all(
      ["one", "other"].map((name) => inContainer(flags, `${build} ${name}`)),
    );
    expect([one?.exitCode, other?.exitCode]).toEqual([0, 0]);
    const again = await inContainer(flags, `${build} one; ${build} other; bough engine check`);
    expect(again.exitCode).toBe(0);
    expect(again.stderr).not.toContain("RUN spawned");
  }, 60_000);

  test("--cpus is refused without control groups", async () => {
    const { exitCode, stderr } = await inContainer(flags, `${build} --cpus 1 --no-cache one`);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining("cannot limit the command's CPUs: there is no control group for it"),
    });
  }, 60_000);

  test("with parts of /proc hidden, a RUN sees command lines of other processes, but not their variables", async () => {
    writeFiles(join(work, "peek"), {
      Dockerfile: [
        "FROM base",
        "RUN cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'bough build'; cat /proc/[0-9]*/environ 2>&- | grep -c HIDDEN || true",
        "",
      ].join("\n"),
    });
    const ended = await inContainer(`-e HIDDEN=value --tmpfs /home/bough ${hidden}`, `${build} peek`);
    expect(ended.stderr).toMatch(/bough build\n0\n/);
  }, 60_000);

  test("with parts of /proc hidden, RUNs see nothing of each other: they run one at a time", async () => {
    const look =
      "for i in 1 2 3 4 5 6 7 8; do cat /proc/[0-9]*/environ 2>&- | tr '\\0' '\\n' | grep ^OTHER= >> /seen; sleep .1; done; cat /seen 2>&- > /all; echo seen: $(sort -u /seen)";
    const stage = (name: string) => `FROM base AS ${name}\nENV OTHER=${name}\nRUN ${look}\n`;
    writeFiles(join(work, "peers"), {
      Dockerfile: `${stage("one")}${stage("two")}FROM base\nCOPY --from=one /all /1\nCOPY --from=two /all /2\n`,
    });
    const { stderr } = await inContainer(`--tmpfs /home/bough ${hidden}`, `${build} --no-cache peers`);
    expect(stderr.match(/seen: (?!\$).*/g)?.toSorted()).toEqual(["seen: OTHER=one", "seen: OTHER=two"]);
  }, 60_000);

  test("with parts of /proc hidden, the engine is not served", async () => {
    const { exitCode, stderr } = await inContainer(`--tmpfs /home/bough ${hidden}`, "bough serve");
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining("the engine can't be served where parts of /proc are hidden"),
    });
  }, 60_000);
});

test.each([
  [
    "no flag",
    "",
    /may not make user namespaces \(unshare failed: Operation not permitted\): start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined$/,
  ],
  [
    "root and no flag",
    "--user 0",
    /may not make user namespaces .*: start it with --security-opt seccomp=unconfined/,
  ],
  [
    "no-new-privileges",
    `${rows.get("user")} --security-opt no-new-privileges`,
    /newuidmap has to map users: leave out --security-opt no-new-privileges$/,
  ],
  [
    "no capabilities",
    `${rows.get("user")} --cap-drop ALL`,
    /newuidmap and newgidmap may not map users in it, without the capabilities SETUID, SETGID: start it with --cap-add SETUID --cap-add SETGID$/,
  ],
  [
    "root and no capabilities",
    `${rows.get("root")} --cap-drop ALL`,
    /: start it with --cap-add SETUID --cap-add SETGID --cap-add SETFCAP$/,
  ],
  [
    "no capabilities and no flag",
    "--cap-drop ALL",
    /may not make user namespaces .*: start it with --security-opt seccomp=unconfined .*, and --cap-add SETUID --cap-add SETGID$/,
  ],
  [
    "no capabilities in a pod",
    `${rows.get("user")} --cap-drop ALL -e KUBERNETES_SERVICE_HOST=10.0.0.1`,
    /: add SETUID, SETGID to the capabilities of its securityContext$/,
  ],
  [
    "a user without a name",
    `${rows.get("user")} --user 123456:0`,
    /the user 123456 has no name in \/etc\/passwd.*: start it with --user 65532, or with --user 0$/,
  ],
  [
    "in a pod",
    "-e KUBERNETES_SERVICE_HOST=10.0.0.1",
    /: set seccompProfile and appArmorProfile of its securityContext to \{type: Unconfined\}/,
  ],
  [
    "a state that is not on a volume",
    `${rows.get("user")} -e BOUGH_HOME=/tmp/state`,
    /\/tmp\/state\/engine is on an overlay, .*: start the container with a volume there: -v bough:\/tmp\/state /,
  ],
])("a container with %s is told in the first line how to start it", async (_, flags, line) => {
  const { exitCode, stderr } = await inContainer(flags, `${build} one`);
  expect({ exitCode, first: stderr.split("\n")[0] }).toEqual({
    exitCode: 2,
    first: expect.stringMatching(line),
  });
});

describe("the manual's examples", () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dir, "../../package.json"), "utf8"));
  const blocks = [...manual.matchAll(/```(?:yml|groovy)\n([\s\S]*?)\n```/g)].map(([, text = ""]) => text);

  test("name this version's image", () => {
    expect(blocks).toHaveLength(5);
    for (const text of blocks) expect(text).toContain(`registry.example/bough:${version}-engine`);
  });

  test("give the containers of pods what the table asks for, and a volume", () => {
    const pods = blocks.map((text) =>
      Bun.YAML.parse(/yaml: '''\n([\s\S]*?)'''/.exec(text)?.[1] ?? text.replace(/^podTemplate[\s\S]*/, "")),
    );
    const containers = pods.flatMap((pod) => findContainers(pod));
    expect(containers).toHaveLength(3);
    for (const { securityContext, volumeMounts } of containers) {
      const unconfined = { type: "Unconfined" };
      expect(securityContext).toMatchObject({
        runAsUser: 0,
        seccompProfile: unconfined,
        appArmorProfile: unconfined,
      });
      expect(volumeMounts).toContainEqual({ name: "state", mountPath: "/home/bough" });
    }
  });
});

interface Container {
  image?: string;
  securityContext?: object;
  volumeMounts?: unknown[];
}

/** Returns the containers of pods that run bough, wherever they are. */
function findContainers(value: unknown): Container[] {
  if (typeof value !== "object" || value === null) return [];
  const { image: name, securityContext } = value as Container;
  if (name !== undefined && securityContext !== undefined) return [value as Container];
  return Object.values(value).flatMap(findContainers);
}
