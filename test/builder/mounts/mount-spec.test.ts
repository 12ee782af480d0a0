/** The fields of each `--mount` with BuildKit's defaults, and its errors. */
import { describe, expect, test } from "bun:test";
import { expandMounts } from "../../../src/builder/mounts/mount-support.ts";
import { parseDockerfile } from "../../../src/dockerfile/parse.ts";

const variables: Readonly<Record<string, string>> = { T: "/t", N: "5", ON: "true" };

function mountsOf(...mounts: string[]) {
  const flags = mounts.map((mount) => `--mount=${mount}`).join(" ");
  const [instruction] =
    parseDockerfile(`FROM a\nRUN ${flags} true\n`, "Dockerfile").stages[0]?.instructions ?? [];
  if (instruction?.name !== "RUN") throw new Error("no RUN");
  return expandMounts(instruction, { lookup: (name) => variables[name], escape: "\\", workdir: "/work/dir" });
}

const bind = { type: "bind", from: undefined, source: "/", readonly: true };
const cache = { type: "cache", sharing: "shared", readonly: false, from: undefined, source: "/" };
const secret = { type: "secret", required: false, isFile: true, env: undefined };

test.each<[string, object]>([
  ["target=/a", { ...bind, target: "/a" }],
  ["target=a/../b", { ...bind, target: "/work/dir/b" }],
  ["target=.", { ...bind, target: "/work/dir" }],
  ["type=bind,src=x/../../y,dst=/a/", { ...bind, target: "/a", source: "/y" }],
  ["type=bind,from=build,destination=/a,rw", { ...bind, target: "/a", from: "build", readonly: false }],
  ["target=/a,ro=false", { ...bind, target: "/a", readonly: false }],
  ["target=/a,rw=0", { ...bind, target: "/a", readonly: true }],
  ["target=$T,readonly=$ON", { ...bind, target: "/t" }],
  ["type=cache,target=/c", { ...cache, target: "/c", id: "/c" }],
  ["type=cache,target=c/", { ...cache, target: "/work/dir/c", id: "c" }],
  [
    "type=CACHE,target=/c,id=i,sharing=locked,mode=755,uid=$N,gid=6,ro",
    { ...cache, target: "/c", id: "i", sharing: "locked", mode: "0755", uid: 5, gid: 6, readonly: true },
  ],
  ["type=tmpfs,target=/m", { type: "tmpfs", target: "/m", size: undefined }],
  ["type=tmpfs,target=/m,size=1k", { type: "tmpfs", target: "/m", size: 1024 }],
  ["type=tmpfs,target=/m,size=64MiB", { type: "tmpfs", target: "/m", size: 2 ** 26 }],
  ["type=secret,id=a/b", { ...secret, id: "a/b", target: "/run/secrets/b" }],
  ["type=secret,target=/x/key", { ...secret, id: "key", target: "/x/key" }],
  ["type=secret,source=s,target=k", { ...secret, id: "s", target: "/work/dir/k" }],
  ["type=secret,id=s,env=S", { ...secret, id: "s", target: "/run/secrets/s", isFile: false, env: "S" }],
  ["type=secret,id=s,env=S,target=/s", { ...secret, id: "s", target: "/s", env: "S" }],
  [
    "type=secret,id=s,required,mode=0440",
    { ...secret, id: "s", target: "/run/secrets/s", required: true, mode: "0440" },
  ],
  ["type=ssh", { type: "ssh", id: "default", target: "/run/buildkit/ssh_agent.0", required: false }],
  [
    "type=ssh,id=x,target=/a,required=1,uid=1",
    { type: "ssh", id: "x", target: "/a", required: true, uid: 1 },
  ],
])("%s", (mount, expected) => {
  expect(mountsOf(mount)).toEqual([expected as never]);
});

test("each of several agents has its own socket, and a mount on another comes after it", () => {
  const targets = mountsOf(
    "target=/b/c",
    "type=ssh",
    "target=/b",
    "type=ssh,id=x",
    "type=tmpfs,target=/a",
  ).map(({ target }) => target);
  expect(targets).toEqual(["/a", "/b", "/b/c", "/run/buildkit/ssh_agent.0", "/run/buildkit/ssh_agent.1"]);
});

describe("refuses --mount=", () => {
  test.each([
    ["target=/", 'invalid mount target "/"'],
    ["target=../..", 'invalid mount target "/"'],
    ["target=/a,ro=maybe", "invalid value for readonly: maybe"],
    ["target=/a,size=1", "unexpected key 'size': it is only for type tmpfs"],
    ["target=/a,required", "unexpected key 'required': it is only for type secret, ssh"],
    ["target=/a,mode=755", "unexpected key 'mode'"],
    ["target=/a,sharing=locked", "unexpected key 'sharing'"],
    ["type=cache,target=/a,sharing=some", 'unsupported sharing value "some"'],
    ["type=cache,target=/a,mode=rwx", "invalid value rwx for mode"],
    ["type=cache,target=/a,uid=-1", "invalid value -1 for uid"],
    ["type=cache,target=/a,gid=root", "invalid value root for gid"],
    ["type=cache,target=/a,env=A", "unexpected key 'env': it is only for type secret"],
    ["type=tmpfs,target=/a,size=much", "invalid value for size: much"],
    ["type=secret", "one of source, target required"],
    ["type=secret,id=a,source=b", "both source and id can't be set"],
    ["type=secret,id=a,from=b", "secret mount should not have a from"],
    ["type=ssh,source=a", "ssh does not support source"],
    ["type=$T,target=/a", 'unsupported mount type "/t"'],
  ])("%s", (mount, message) => {
    expect(() => mountsOf(mount)).toThrow(message);
  });
});
