import { expect, test } from "bun:test";
import { join } from "node:path";
import { emulatedPlatforms, unrunnableReason } from "../../src/engine/system/emulation.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const riscv = { magic: "7f454c460201010000000000000000000200f300", platform: "linux/riscv64" };
const s390x = { magic: "7f454c4602020100000000000000000000020016", platform: "linux/s390x" };
const withList = "nodev\tproc\nnodev\tbinfmt_misc\n\text4\n";
const handler = (magic: string, flags: string, state = "enabled") =>
  `${state}\ninterpreter /usr/bin/qemu\nflags: ${flags}\noffset 0\nmagic ${magic}\nmask ffff\n`;

test.each<[string, Record<string, string>, string, string | undefined]>([
  [
    "the interpreter is registered",
    { status: "enabled", q: handler(riscv.magic, "PF") },
    riscv.platform,
    undefined,
  ],
  [
    "it is for numbers of the other byte order",
    { status: "", q: handler(s390x.magic, "F") },
    s390x.platform,
    undefined,
  ],
  [
    "only another one is registered",
    { status: "", q: handler(s390x.magic, "F") },
    riscv.platform,
    "install qemu-user-static",
  ],
  [
    "it is disabled",
    { status: "", q: handler(riscv.magic, "F", "disabled") },
    riscv.platform,
    "install qemu-user-static",
  ],
  [
    "it is looked for in the container",
    { status: "", q: handler(riscv.magic, "OC") },
    riscv.platform,
    "q is registered without the flag F",
  ],
  [
    "others are for names of files",
    { status: "", python: "enabled\nextension .py\n" },
    riscv.platform,
    "install qemu-user-static",
  ],
  [
    "a file of the list can't be read",
    { status: "enabled", "register/write-only": "", q: handler(riscv.magic, "F") },
    riscv.platform,
    undefined,
  ],
  [
    "all are disabled",
    { status: "disabled\n", q: handler(riscv.magic, "F") },
    riscv.platform,
    "install qemu-user-static",
  ],
  ["the kernel's list is not mounted", {}, riscv.platform, undefined],
  ["the kernel has no list", { filesystems: "\text4\n" }, riscv.platform, "install qemu-user-static"],
  ["nobody knows such programs", { status: "" }, "linux/unheard-of", undefined],
  [
    "it is the machine's own",
    { status: "" },
    `linux/${process.arch === "arm64" ? "arm64" : "amd64"}/v9`,
    undefined,
  ],
])("whether a command can run: %s", (_, files, platform, expected) => {
  const directory = temporaryDirectory();
  const filesystems = join(directory, "filesystems");
  writeFiles(directory, { filesystems: withList, ...files });
  const reason = unrunnableReason(platform, directory, filesystems);
  if (expected === undefined) expect(reason).toBeUndefined();
  else expect(reason).toContain(expected);
});

test("the platforms of all interpreters that the kernel has open are listed", () => {
  const directory = temporaryDirectory();
  writeFiles(directory, {
    status: "enabled",
    a: handler(riscv.magic, "PF"),
    b: handler(s390x.magic, "F"),
    c: handler(riscv.magic, "F"),
    d: handler("7f454c460201010000000000000000000200b700", "OC"),
  });
  expect(emulatedPlatforms(directory)).toEqual(["linux/riscv64", "linux/s390x"]);
  writeFiles(directory, { "with/list": withList, without: "\text4\n" });
  const missing = join(directory, "missing");
  expect(emulatedPlatforms(missing, join(directory, "with/list"))).toBeUndefined();
  expect(emulatedPlatforms(missing, join(directory, "without"))).toEqual([]);
});
