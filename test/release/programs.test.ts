/** `bring_programs` of `scripts/toolchain.sh`: what an installation of programs does to the machine's services. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

const scripts = join(import.meta.dir, "../../scripts");
const policy = "/usr/sbin/policy-rc.d";

/** A machine that runs systemd, as far as an installation sees: its mounts are those of this process only. */
const machine = `
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system
mount -t tmpfs tmpfs /etc/systemd && mkdir -p /etc/systemd/system/multi-user.target.wants
ln -s /none /etc/systemd/system/multi-user.target.wants/cron.service
mkdir /run/upper /run/work
mount -t overlay -o lowerdir=/usr/sbin,upperdir=/run/upper,workdir=/run/work overlay /usr/sbin
rm -f ${policy}
. "$1"
`;

/** What Debian's packages do when they are installed: enable a service, and ask for its start as the policy allows. */
const apt = `#!/bin/sh
[ "$1" = install ] || exit 0
echo "$@" >> "$LOG"
ln -s /none /etc/systemd/system/multi-user.target.wants/docker.service
deb-systemd-invoke start docker.service
[ ! -e "$LOG.fails" ] || exit 100
`;

/** Records each call, except for the reload after an installation. */
const systemctl = '#!/bin/sh\n[ "$1" = daemon-reload ] || echo "systemctl $*" >> "$LOG"\n';

const installs = "install --yes --no-install-recommends ca-certificates docker.io -qq\n";
const none = "ls: cannot access '/usr/sbin/policy-rc.d': No such file or directory\n";

test.each([
  ["no service is started or enabled, and only errors are printed", ":", 0, /Debian's packages\n$/, none],
  ["also if the installation fails", ": > $LOG.fails", 100, /policy-rc\.d returned 101/, none],
  [
    "an administrator's policy is kept",
    `echo '#!/bin/sh\nexit 101' > ${policy}; chmod +x ${policy}`,
    0,
    /Debian's packages\n$/,
    policy,
  ],
])("%s", async (_, before, exitCode, said, left) => {
  const directory = temporaryDirectory();
  const log = join(directory, "log");
  const bring = "status=0; (bring_programs no-such-program:docker.io) || status=$?";
  const look = `ls /etc/systemd/system/multi-user.target.wants; ls ${policy} 2>&1 || true`;
  writeFiles(directory, {
    "bin/apt-get": { text: apt, mode: 0o755 },
    "bin/systemctl": { text: systemctl, mode: 0o755 },
    script: `${machine}\n${before}\n${bring}\n${look}\nexit $status\n`,
  });
  const child = Bun.spawn(
    ["unshare", "--mount", "--propagation", "private", "sh", "-eu", "script", join(scripts, "toolchain.sh")],
    {
      cwd: directory,
      env: { PATH: `${join(directory, "bin")}:${process.env.PATH}`, LOG: log },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const ended = await endOf(child);
  expect(ended).toEqual({
    exitCode,
    stdout: `cron.service\n${left.trim()}\n`,
    stderr: expect.stringMatching(said),
  });
  expect(readFileSync(log, "utf8")).toBe(installs);
});

test("of two packages for a program the first that the release has is installed", async () => {
  const directory = temporaryDirectory();
  writeFiles(directory, {
    "bin/apt-cache": { text: '#!/bin/sh\n[ "$1 $2" = "show known" ]\n', mode: 0o755 },
    script: '. "$1"\nfor package in known/other old/other single; do available_package "$package"; done\n',
  });
  const child = Bun.spawn(["sh", "-eu", "script", join(scripts, "toolchain.sh")], {
    cwd: directory,
    env: { PATH: `${join(directory, "bin")}:${process.env.PATH}` },
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await endOf(child)).toEqual({ exitCode: 0, stdout: "known\nother\nsingle\n", stderr: "" });
});

test("the manual names the packages that scripts/test and scripts/demo install", () => {
  const read = (path: string) => readFileSync(join(scripts, path), "utf8");
  const calls = Array.from(`${read("test")}${read("demo")}`.matchAll(/\bbring_programs (.*)/g));
  const packages = calls.flatMap(([, words = ""]) =>
    words.split(" ").flatMap((word) => word.split(":").at(-1)?.split("/") ?? []),
  );
  const manual = read("../src/cli/help/topics/install.md");
  expect(packages.filter((name) => !manual.includes(`\`${name}\``))).toEqual([]);
});
