import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { grantedWith } from "../../src/engine/sandbox/sandbox-process.ts";
import { invertedFilter, seccompFilter } from "../../src/engine/sandbox/seccomp.ts";
import { runs } from "../support/random.ts";

/** Some capabilities of Docker's default set. */
const capabilities = ["CAP_CHOWN", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SYS_CHROOT", "CAP_KILL"];

/** Returns a line for each call and condition, sorted: `SCMP_ACT_ALLOW read`, `SCMP_ACT_ALLOW socket SCMP_CMP_LT 38 0`. */
function linesOf(architecture: string, granted: readonly string[]): string[] {
  const { syscalls } = seccompFilter(architecture, granted);
  return syscalls
    .flatMap(({ names, action, errnoRet, args = [] }) => {
      const number = errnoRet === undefined ? "" : ` ${errnoRet}`;
      const condition = args.map(({ op, value, valueTwo = 0 }) => ` ${op} ${value} ${valueTwo}`).join("");
      return names.map((name) => `${action}${number} ${name}${condition}`);
    })
    .sort();
}

/**
 * The digests are SHA-256 of such lines, joined by newlines, made from moby's own file (named in
 * src/engine/sandbox/system-calls.ts): the groups whose `includes` and `excludes` fit the architecture and capabilities.
 */
test.each([
  ["amd64", [], 377, "c6eaead0b0caad27cf8f8bce2e65c274f9ef3901970efe7766036f57b78d9562"],
  ["amd64", ["CAP_SYS_ADMIN"], 401, "c4b4c8c92d46b7df8ed619de1bcb8b289e94d5122b4aa2e5b0514a315114b32d"],
  ["arm64", [], 381, "24cb8b0313a5e998745aa5c09e8f3c01bcaeb56dfb6e51caf0c6fb5773759a61"],
  ["arm64", ["CAP_SYS_ADMIN"], 405, "ba32575e956ac28996efee6c7f99b1804a3e60353c34d83c5692d122f7ae2740"],
] as const)(
  "the filter equals Docker's: %s with the capabilities %p added",
  (architecture, more, count, digest) => {
    const lines = linesOf(architecture, [...capabilities, ...more]);
    expect(lines).toHaveLength(count);
    expect(new Bun.CryptoHasher("sha256").update(lines.join("\n")).digest("hex")).toBe(digest);
  },
);

describe("the filter does not allow", () => {
  const allowed = new Set(
    seccompFilter("amd64", capabilities)
      .syscalls.filter(({ action, args }) => action === "SCMP_ACT_ALLOW" && args === undefined)
      .flatMap(({ names }) => names),
  );

  test.each(
    `add_key keyctl request_key bpf clone clone3 unshare setns mount umount2 move_mount fsopen open_tree io_uring_setup
     io_uring_enter io_uring_register userfaultfd perf_event_open kexec_load init_module open_by_handle_at reboot swapon
     settimeofday iopl ioperm acct quotactl pivot_root personality socket vhangup syslog kcmp pidfd_getfd`.split(
      /\s+/,
    ),
  )("%s", (name) => {
    expect(allowed.has(name)).toBe(false);
  });

  test("calls that it does not name, which end with EPERM", () => {
    expect(seccompFilter("arm64", [])).toMatchObject({
      defaultAction: "SCMP_ACT_ERRNO",
      defaultErrnoRet: 1,
      architectures: ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
    });
  });
});

test("a capability allows its calls", () => {
  expect(linesOf("amd64", [])).not.toContain("SCMP_ACT_ALLOW chroot");
  expect(linesOf("amd64", ["CAP_SYS_CHROOT"])).toContain("SCMP_ACT_ALLOW chroot");
});

test("an architecture without a filter is an error", () => {
  expect(() => seccompFilter("s390x", [])).toThrow("there is no filter of system calls for s390x");
});

describe("the filter for crun, which fails unknown calls with ENOSYS,", () => {
  type Filter = ReturnType<typeof seccompFilter>;

  /** Returns the results of all rules for a call, "allowed" or an error number: there must be no more than one. */
  function resultsOf({ syscalls, defaultErrnoRet }: Filter, name: string, argument: number): unknown[] {
    const fits = ({ value, valueTwo = 0, op }: { value: number; valueTwo?: number; op: string }) =>
      ({
        SCMP_CMP_LT: argument < value,
        SCMP_CMP_EQ: argument === value,
        SCMP_CMP_GT: argument > value,
        SCMP_CMP_MASKED_EQ: (argument & value) >>> 0 === valueTwo,
      })[op];
    const found = syscalls.filter(({ names, args = [] }) => names.includes(name) && args.every(fits));
    const results = found.map(({ action, errnoRet }) => (action === "SCMP_ACT_ALLOW" ? "allowed" : errnoRet));
    return results.length === 0 ? [defaultErrnoRet] : [...new Set(results)];
  }

  const architectures = ["amd64", "arm64"] as const;
  const bits = fc.array(fc.integer({ min: 0, max: 31 }), { maxLength: 4 });
  const number = fc.oneof(
    fc.constantFrom(0, 8, 37, 38, 39, 40, 41, 0x20000, 0x20008, 0xffff_ffff),
    bits.map((set) => set.reduce((sum, bit) => (sum | (1 << bit)) >>> 0, 0)),
    bits.map((clear) => clear.reduce((sum, bit) => (sum & ~(1 << bit)) >>> 0, 0xffff_ffff)),
  );

  test.each(architectures)("has the same result for every known call: %s", (architecture) => {
    const filter = seccompFilter(architecture, capabilities);
    const inverted = invertedFilter(architecture, capabilities);
    const names = inverted.syscalls.flatMap(({ names }) => names);
    const call = fc.oneof(fc.constantFrom(...names), fc.constantFrom("socket", "clone", "personality"));
    fc.assert(
      fc.property(call, number, (name, argument) => {
        expect(resultsOf(inverted, name, argument)).toEqual(resultsOf(filter, name, argument));
      }),
      { numRuns: runs(1000) },
    );
  });

  test("is the same for commands of every network, although some have one more capability", () => {
    for (const architecture of architectures)
      for (const kind of ["private", "host"] as const)
        expect(invertedFilter(architecture, grantedWith({ kind }))).toEqual(
          invertedFilter(architecture, grantedWith({ kind: "none" })),
        );
  });
});
