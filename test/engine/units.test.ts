/**
 * bough in a unit of systemd, on a machine that has control groups of version 2 only: a hierarchy without controllers is mounted
 * over this machine's groups, for the programs of a test.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";

let layout: string;
beforeAll(async () => {
  layout = temporaryDirectory();
  await makeBusyboxLayout(layout);
});

/** Runs a command with bough, whose command line is "$@", in a unit that has another process. Prints the groups of the unit. */
const inUnit = `
umount --all --lazy --types cgroup,cgroup2
mount -t cgroup2 cgroup2 /sys/fs/cgroup
unit=/sys/fs/cgroup/bough-test-$$.service
mkdir $unit
trap 'echo 0 > /sys/fs/cgroup/cgroup.procs; kill $other; wait; rmdir $unit/*/ $unit' EXIT
chown -R $OWNER $unit
chown $OWNER /sys/fs/cgroup/cgroup.procs
echo 0 > $unit/cgroup.procs
sleep 1000 & other=$!
"$@" images import oci:$LAYOUT:latest --tag base:1 >/dev/null 2>&1
: > "$OUT"
"$@" run -D --network=none --use tag:base:1 -- sh -c "$COMMAND" > "$OUT" 2>"$OUT.err" & bough=$!
until grep -q ready "$OUT"; do sleep 0.05; kill -0 $bough || cat "$OUT.err"; done
for group in $unit $unit/bough $unit/*-*/; do
  echo "$(basename $group | sed s/$$/N/) $(wc -l < $group/cgroup.procs)"
done
kill $bough 2>/dev/null
wait $bough 2>/dev/null || cat "$OUT"
`;

const command =
  "ls /sys/fs/cgroup | grep -x cgroup.procs; cat /sys/fs/cgroup/cgroup.procs | head -n 1; mkdir /sys/fs/cgroup/x 2>&1; echo ready; sleep 1000";

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  let user: OrdinaryUser | undefined;
  let bough: string[];
  beforeAll(() => {
    user = who === "root" ? undefined : makeOrdinaryUser({ staysInNamespace: true });
    bough = user === undefined ? [compileBough()] : [...user.prefix, user.giveBough()];
  });
  afterAll(() => user?.remove());

  test.each(["runc", "crun"])(
    "the groups of a command are below that of the unit, with %s",
    async (runtime) => {
      const home = user?.home ?? temporaryDirectory();
      const source = user?.give(layout, `layout-${runtime}`) ?? layout;
      const child = Bun.spawn(
        ["unshare", "--mount", "--propagation", "private", "sh", "-eu", "-c", inUnit, "sh", ...bough],
        {
          env: {
            ...{
              PATH: process.env.PATH,
              HOME: home,
              BOUGH_RUNTIME: runtime,
              LAYOUT: source,
              COMMAND: command,
            },
            ...{ OUT: `${temporaryDirectory()}/out`, OWNER: user === undefined ? "0" : "61234" },
          },
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      const { stdout, stderr } = await endOf(child);
      expect(stderr).toBe("");
      expect(stdout).toMatch(
        /^bough-test-N.service 0\nbough [1-9]\d*\n([\w.-]+ [1-9]\d*\n)+cgroup.procs\n\d\nmkdir: .*Read-only file system\nready\n$/,
      );
    },
  );
});
