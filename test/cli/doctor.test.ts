/**
 * `bough doctor`: what works, what does not, and how to repair it. `test/cases/doctor/<case>.txt` is its output, with this
 * machine's facts replaced, then the exit code if it is not 0. `UPDATE_GOLDEN=1 ./scripts/test` writes it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { CheckResult } from "../../src/cli/doctor/check-result.ts";
import {
  type ContainerProbe,
  diagnoseContainer,
  diagnoseEngine,
  diagnosePlatforms,
  type EngineProbe,
} from "../../src/cli/doctor/engine.ts";
import {
  diagnoseLimits,
  diagnoseNetwork,
  diagnoseRuntime,
  type LimitsProbe,
  type RuntimeProbe,
} from "../../src/cli/doctor/runtime.ts";
import type { Clock } from "../../src/clock.ts";
import { BoughError } from "../../src/errors.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { expectGolden } from "../support/golden.ts";
import { makeOrdinaryUser } from "../support/ordinary-user.ts";

const two = { version: 2, countsSwap: true } as const;
const cases = join(import.meta.dir, "../cases/doctor");

interface Situation {
  words?: string;
  environment?: Record<string, string>;
  platform?: NodeJS.Platform;
  /** Files below the home, with their modes. */
  files?: Record<string, readonly [content: string, mode: number]>;
}

let service: FakeService;
let bare: FakeService;
beforeAll(async () => {
  service = await startFakeService({ token: "good-token" });
  bare = await startFakeService({ sixCallsOnly: true });
});
afterAll(() => Promise.all([service.close(), bare.close()]));

const remote = { CONTREE_URL: "{service}", CONTREE_TOKEN: "good-token" };
const profile = "[profile:work]\ntoken = good-token\nurl = {service}\ntype = jwt\n";

const situations: Record<string, Situation> = {
  "embedded engine": {},
  "remote service": { environment: remote },
  "remote service from a Mac": { environment: remote, platform: "darwin" },
  "token refused": { environment: { ...remote, CONTREE_TOKEN: "wrong-token" } },
  "service that knows no whoami": { environment: { ...remote, CONTREE_URL: "{bare}" } },
  "no service on Windows": { platform: "win32" },
  "unknown profile": { words: "--profile wrok", files: { "contree/auth.ini": [profile, 0o600] } },
  "profile that others can read": {
    words: "--profile work",
    files: { "contree/auth.ini": [profile, 0o644] },
  },
  "state directory below a file": {
    environment: { BOUGH_HOME: "{home}/file/state" },
    files: { file: ["", 0o644] },
  },
  "one object": { words: "--format json", environment: { ...remote, CONTREE_TOKEN: "wrong-token" } },
  "only what is broken": { words: "--quiet", environment: { ...remote, CONTREE_TOKEN: "wrong-token" } },
};

describe("bough doctor, with", () => {
  test.each(Object.entries(situations))("%s", async (name, situation) => {
    const home = temporaryDirectory();
    const fill = (text: string) =>
      text.replaceAll("{service}", service.url).replaceAll("{bare}", bare.url).replaceAll("{home}", home);
    for (const [path, [content, mode]] of Object.entries(situation.files ?? {})) {
      mkdirSync(dirname(join(home, path)), { recursive: true });
      writeFileSync(join(home, path), fill(content));
      chmodSync(join(home, path), mode);
    }
    const environment = {
      CONTREE_HOME: "{home}/contree",
      BOUGH_HOME: "{home}/state",
      ...situation.environment,
    };
    const options: BoughOptions = {
      workingDirectory: "/",
      environment: Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, fill(value)])),
      ...(situation.platform === undefined ? {} : { platform: situation.platform }),
    };
    const words = [...(situation.words?.split(" ") ?? []), "doctor"];
    const { exitCode, stdout, stderr } = await runBough(words, options);
    const shown = normalize(stdout + stderr, home) + (exitCode === 0 ? "" : `exit code ${exitCode}\n`);
    expectGolden(join(cases, `${name}.txt`), shown);
  });
});

test("on a terminal, lines are wrapped between words, below their own text", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory(), CONTREE_URL: "ftp://example" };
  const [whole, wrapped] = await Promise.all(
    [{}, { terminalColumns: 50 }].map((options) =>
      runBough(["doctor"], { workingDirectory: "/", environment, ...options }),
    ),
  );
  const lines = wrapped?.stdout.split("\n") ?? [];
  expect(lines.length).toBeGreaterThan(whole?.stdout.split("\n").length ?? 0);
  expect(wrapped?.stdout.split(/\s+/)).toEqual(whole?.stdout.split(/\s+/) ?? []);
});

test("a service that fails until the time for the check is over: what it answered", async () => {
  using failing = Bun.serve({ port: 0, fetch: () => new Response("out of order", { status: 500 }) });
  const { stdout } = await runBough(["doctor"], {
    workingDirectory: "/",
    environment: { BOUGH_HOME: temporaryDirectory(), CONTREE_URL: failing.url.origin },
    platform: "darwin",
    clock: clockThatWaitsOnce(),
  });
  expect(stdout).toContain(
    "/v1/whoami responded with 500 Internal Server Error: out of order\n         fix: ",
  );
});

/** The deadline of ten seconds is over as soon as another attempt is waited for, which never begins. */
function clockThatWaitsOnce(): Clock {
  let now = 0;
  const over = Promise.withResolvers<void>();
  return {
    now: () => now,
    sleep(milliseconds, signal) {
      if (milliseconds === 10_000) return over.promise;
      if (milliseconds < 10_000) {
        now = 10_000;
        over.resolve();
      }
      return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    },
  };
}

function normalize(text: string, home: string): string {
  return (
    text
      .replaceAll(home, "HOME")
      .replaceAll(service.url, "https://service")
      .replaceAll(bare.url, "https://bare")
      .replace(/0\.\d+\.\d+, (commit \w+ of \S+, )?Bun [\d.]+, (\w+) \w+/, "VERSION, $2")
      .replace(/"(version|commit|commitDate)": .*,/g, '"$1": ...,')
      .replace(/\d+(\.\d)? [GT]B free/, "ROOM free")
      // crun, if this machine has it: other tests cover it.
      .replace(/, crun \d[\w.+~-]*/g, "")
      .replace(
        /(engine's runtime +|"check": "engine's runtime",\s+"status": "ok",\s+"detail": ).*/g,
        "$1RUNTIME",
      )
      // The kernel's list of interpreters may be there or not.
      .replace(/^ok +emulation .*\n/m, "")
      .replace(/,\s+\{\s+"check": "emulation",[^}]*\}/, "")
      .replace(/(runc|skopeo|slirp4netns) \d[\w.+~-]*/g, "$1 VERSION")
  );
}

describe("a missing part of the engine is a failure if the engine is needed, otherwise a warning", () => {
  const fine: EngineProbe = {
    container: undefined,
    isRoot: true,
    namespaceProblem: undefined,
    missing: [],
    versions: ["runc 1"],
    overlay: "mounted",
    runtime: { hasRunc: true, wanted: undefined, crun: "works" },
    limits: "untried",
    network: "slirp4netns 1",
    emulated: [],
  };
  test.each<[string, Partial<EngineProbe>, string, string | undefined]>([
    [
      "programs",
      {
        missing: [
          { program: "runc", package: "runc" },
          { program: "sh", package: "dash" },
        ],
        versions: [],
      },
      "missing: runc, sh",
      "apt-get install runc dash",
    ],
    [
      "a user namespace",
      { isRoot: false, namespaceProblem: new BoughError("why", { hint: "how" }), overlay: "untried" },
      "why",
      "how",
    ],
    [
      "overlayfs",
      { overlay: { problem: "no such device" } },
      "overlayfs can't be mounted: no such device",
      undefined,
    ],
  ])("%s", (_, facts, detail, fix) => {
    for (const isNeeded of [true, false]) {
      const found = diagnoseEngine({ ...fine, ...facts }, isNeeded).filter(({ status }) => status !== "ok");
      expect(found).toHaveLength(1);
      expect(found[0]).toMatchObject({ status: isNeeded ? "failed" : "warning", detail });
      expect(found[0]?.fix).toContain(fix ?? "Linux 5.11");
    }
  });
});

test.each<[string, Partial<ContainerProbe>, boolean, string, string]>([
  ["a pod", { kind: "Kubernetes" }, true, "ok", 'Kubernetes, in row "root" of `bough help ci`'],
  [
    "Docker without any flag",
    {},
    false,
    "ok",
    "Docker, not in the table of `bough help ci`: see engine's user",
  ],
  [
    "a hidden /proc",
    { hasOwnProc: false },
    true,
    "warning",
    'Docker, in row "root" of `bough help ci`; parts of /proc are hidden, so a RUN sees this container\'s processes, and no process can be started beside its command',
  ],
])("the container: %s", (_, facts, canBuild, status, detail) => {
  const found = diagnoseContainer({ kind: "Docker", row: "root", hasOwnProc: true, ...facts }, canBuild);
  expect(found).toMatchObject({ check: "container", status, detail });
});

test.each<[string, Partial<RuntimeProbe>, string, string]>([
  ["crun works", { crun: "works" }, "ok", "crun; a RUN on a terminal uses runc"],
  [
    "crun was not tried",
    { crun: "untried" },
    "ok",
    "crun, which the next RUN tries; a RUN on a terminal uses runc",
  ],
  ["there is no runc", { hasRunc: false }, "ok", "crun; runc is missing, which a RUN on a terminal needs"],
  [
    "crun has failed",
    { crun: { problem: "why" } },
    "ok",
    "runc; crun would start a RUN in a third of the time, but cannot be used: why",
  ],
  ["BOUGH_RUNTIME is runc", { wanted: "runc" }, "ok", "runc, as BOUGH_RUNTIME says"],
  [
    "BOUGH_RUNTIME is crun, which has failed",
    { wanted: "crun", crun: { problem: "why" } },
    "failed",
    "BOUGH_RUNTIME is crun, which cannot be used: why",
  ],
  ["BOUGH_RUNTIME is invalid", { wanted: new BoughError("why") }, "failed", "why"],
])("the engine's runtime: %s", (_, facts, status, detail) => {
  const found = diagnoseRuntime({ hasRunc: true, wanted: undefined, crun: "works", ...facts }, "failed");
  expect(found).toMatchObject({ check: "engine's runtime", status, detail });
});

test.each([
  [[], "only the machine's own: a RUN for another one (--platform) needs an interpreter (apt-get install "],
  [["linux/arm64", "linux/s390x"], "the machine's own, and through interpreters linux/arm64, linux/s390x"],
])("the emulation beside its own: %j", (emulated, detail) => {
  expect(diagnosePlatforms(emulated)).toMatchObject({
    status: "ok",
    detail: expect.stringContaining(detail),
  });
});

test.each([
  ["no slirp4netns", "usable", "how"],
  ["only root may open /dev/net/tun", "forbidden", "chmod 0666"],
  ["no /dev/net/tun", "missing", "modprobe"],
] as const)("a missing private network is a warning: %s", (_, device, fix) => {
  const [finding] = diagnoseNetwork({ problem: new BoughError("why", { hint: "how" }), device });
  expect(finding).toMatchObject({ check: "engine's network", status: "warning" });
  expect(finding?.detail).toContain("why");
  expect(finding?.fix).toContain(fix);
});

test.each<[string, LimitsProbe, Partial<CheckResult>]>([
  [
    "root",
    { isRoot: true, hasVersionTwo: true, controllers: { memory: two, pids: two, cpu: two } },
    { status: "ok", detail: "control groups: memory, processes, processors" },
  ],
  [
    "root without writable control groups",
    { isRoot: true, hasVersionTwo: false, controllers: {} },
    {
      status: "failed",
      detail: "control groups cannot be created, but as root each RUN needs one that restricts its devices",
      fix: "Mount /sys/fs/cgroup writable (inside of a container: --privileged).",
    },
  ],
  [
    "root in a container whose processes are in its top group",
    { isRoot: true, hasVersionTwo: true, controllers: {}, crowdedGroup: "/sys/fs/cgroup" },
    {
      detail:
        "no control group for memory, processes, processors; memory, processes are checked by bough itself, which may notice an excess a moment late; --cpus is not supported",
      fix: "Move this container's processes into a group below: mkdir /sys/fs/cgroup/init && xargs -rn1 < /sys/fs/cgroup/cgroup.procs > /sys/fs/cgroup/init/cgroup.procs",
    },
  ],
  [
    "an ordinary user, version 2",
    { isRoot: false, hasVersionTwo: true, controllers: {} },
    {
      detail:
        "no control group for memory, processes, processors; memory, processes are checked by bough itself, which may notice an excess a moment late; --cpus is not supported",
      fix: "With systemd, if you have logged in (ssh, console or desktop; not su): systemd-run --user --scope -p Delegate=yes bough ... Or run bough as root.",
    },
  ],
  [
    "an ordinary user, version 2 without processors",
    { isRoot: false, hasVersionTwo: true, controllers: { memory: two, pids: two } },
    {
      detail: "no control group for processors; --cpus is not supported",
      fix: expect.stringContaining("Delegate=cpu memory pids"),
    },
  ],
  [
    "an ordinary user, version 1",
    { isRoot: false, hasVersionTwo: false, controllers: {} },
    { fix: "Run bough as root, or start Linux with systemd.unified_cgroup_hierarchy=1." },
  ],
  [
    "an ordinary user in a container",
    { isRoot: false, isInContainer: true, hasVersionTwo: true, controllers: {} },
    { fix: expect.stringContaining("The container's own limits hold for all RUNs together") },
  ],
])("how the limits of a RUN are enforced: %s", (_, facts, expected) => {
  const finding = diagnoseLimits(facts, "failed");
  expect(finding).toMatchObject({ check: "engine's limits", status: "warning", ...expected });
});

describe("for an ordinary user, outside of a user namespace", () => {
  test.each([
    [true, 0, "ok       engine's user      root of a user namespace\n"],
    [false, 1, "failed   engine's user      the embedded engine needs root, or a user namespace"],
  ])("sub-ids: %p", (subordinateIds, exitCode, line) => {
    const user = makeOrdinaryUser({ subordinateIds });
    const bough = user.giveBough();
    const environment = ["env", "-i", `PATH=${process.env.PATH}`, `HOME=${user.home}`];
    const ended = Bun.spawnSync([...user.prefix, ...environment, bough, "doctor"]);
    const stdout = ended.stdout.toString();
    const left = Bun.spawnSync(["find", join(user.home, ".local/state/bough"), "-name", "overlay-trial-*"]);
    user.remove();
    expect(stdout).toContain(line);
    if (subordinateIds) expect(stdout).toContain("ok       engine's layers    overlayfs can be mounted\n");
    if (subordinateIds) expect(stdout).toContain("ok       engine's network   slirp4netns");
    if (subordinateIds) expect(stdout).toContain("warning  engine's limits    no control group for memory,");
    else expect(stdout).toContain("fix: As root: usermod --add-subuids");
    expect(ended.exitCode).toBe(exitCode);
    expect(left.stdout.toString()).toBe("");
  });

  test.each([
    [
      "newuidmap without its setuid bit",
      'cp /usr/bin/newuidmap "$1/map"; mount --bind "$1/map" /usr/bin/newuidmap',
      "newuidmap and newgidmap may not map sub-ids (newuidmap: write to uid_map failed: Operation not permitted)",
      "As root: chmod u+s /usr/bin/newuidmap /usr/bin/newgidmap",
    ],
    [
      "AppArmor, which forbids user namespaces to programs without a profile",
      'mount -t tmpfs tmpfs /proc/sys/kernel; echo 1 > /proc/sys/kernel/apparmor_restrict_unprivileged_userns; mkdir "$1/root"; mount --rbind / "$1/root"; root=$1/root; shift; exec chroot "$root" "$@"',
      "/proc/sys/kernel/apparmor_restrict_unprivileged_userns is 1",
      "profile bough HOME/bough flags=(unconfined) {\\n  userns,\\n}\\n' > /etc/apparmor.d/bough && apparmor_parser -r",
    ],
    [
      "BusyBox's unshare, first in PATH",
      'mkdir "$1/bin"; ln -s /bin/busybox "$1/bin/unshare"; chmod 755 "$1"',
      "DIRECTORY/bin/unshare (busybox) is not the unshare that the embedded engine needs: unrecognized option",
      "Install the unshare of util-linux 2.38 or later",
    ],
    [
      "an unshare before --map-auto",
      `mkdir "$1/bin"; chmod 755 "$1"; cat > "$1/bin/unshare" <<'END'
#!/bin/sh
for word; do case $word in
  --) break ;;
  --map-auto | --map-users) echo "unshare: unrecognized option '$word'" >&2; exit 1 ;;
esac; done
exec /usr/bin/unshare "$@"
END
chmod 755 "$1/bin/unshare"`,
      "DIRECTORY/bin/unshare is not the unshare that the embedded engine needs: unrecognized option",
      "Install the unshare of util-linux 2.38 or later",
    ],
  ])("%s is named, with what to do about it", (_, prepare, detail, fix) => {
    const user = makeOrdinaryUser({ staysInNamespace: true });
    const [bough, directory] = [user.giveBough(), temporaryDirectory()];
    chmodSync(dirname(directory), 0o755);
    const inNamespace = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"];
    const environment = ["env", "-i", `PATH=${directory}/bin:${process.env.PATH}`, `HOME=${user.home}`];
    const ended = Bun.spawnSync([
      ...[...inNamespace, `${prepare}; shift; exec "$@"`, "sh", directory],
      ...[...user.prefix, ...environment, bough, "doctor"],
    ]);
    user.remove();
    const stdout = ended.stdout.toString().replaceAll(user.home, "HOME").replaceAll(directory, "DIRECTORY");
    expect(stdout).toContain(detail);
    expect(stdout).toContain(fix);
    expect(ended.exitCode).toBe(1);
  });
});
