import { describe, expect, test } from "bun:test";
import {
  isRepositoryAddress,
  parseRepositoryAddress,
} from "../../src/builder/addresses/repository-address.ts";
import type { RemoteAccess } from "../../src/builder/remote-files/remote-access.ts";
import { createGitClient } from "../../src/builder/repositories/git-client.ts";

const plain = {
  ref: undefined,
  subdirectory: "",
  commit: undefined,
  keepsGitDirectory: undefined,
  hasSubmodules: true,
  isByCommit: false,
  hasCommitTimes: false,
};
const https = { ...plain, scheme: "https", remote: "https://example.com/foo.git" };
const scp = { ...plain, scheme: "ssh", remote: "git@example.com:foo" };

test.each([
  ["https://example.com/foo.git", https],
  ["HTTPS://example.com/foo.git", https],
  ["https://u:p@example.com:81/foo.git", { ...https, remote: "https://u:p@example.com:81/foo.git" }],
  ["http://example.com/foo.git", { ...https, scheme: "http", remote: "http://example.com/foo.git" }],
  ["https://example.com/foo.git#deadbeef", { ...https, ref: "deadbeef" }],
  ["https://example.com/foo.git#release/1.2", { ...https, ref: "release/1.2" }],
  ["https://example.com/foo.git#baz/qux:quux/quuz", { ...https, ref: "baz/qux", subdirectory: "quux/quuz" }],
  ["https://example.com/foo.git#:dir/", { ...https, subdirectory: "dir" }],
  ["https://example.com/foo.git#:../../dir", { ...https, subdirectory: "dir" }],
  ["https://example.com/foo.git?ref=v1&subdir=/dir", { ...https, ref: "v1", subdirectory: "dir" }],
  ["https://example.com/foo.git?subdir=/dir#v1", { ...https, ref: "v1", subdirectory: "dir" }],
  ["https://example.com/foo.git?tag=v1", { ...https, ref: "refs/tags/v1" }],
  ["https://example.com/foo.git?tag=v1#refs/tags/v1", { ...https, ref: "refs/tags/v1" }],
  ["https://example.com/foo.git?branch=v1", { ...https, ref: "refs/heads/v1" }],
  ["https://example.com/foo.git?commit=dead", { ...https, commit: "dead" }],
  [
    "https://example.com/foo.git?checksum=dead&fetch-by-commit",
    { ...https, commit: "dead", isByCommit: true },
  ],
  [
    "https://example.com/foo.git?keep-git-dir&submodules=0",
    { ...https, keepsGitDirectory: true, hasSubmodules: false },
  ],
  ["https://example.com/foo.git?keep-git-dir=false", { ...https, keepsGitDirectory: false }],
  ["https://example.com/foo.git?mtime=checkout", https],
  ["https://example.com/foo.git?mtime=commit", { ...https, hasCommitTimes: true }],
  ["git://example.com/foo", { ...plain, scheme: "git", remote: "git://example.com/foo" }],
  ["ssh://git@example.com/foo", { ...plain, scheme: "ssh", remote: "ssh://git@example.com/foo" }],
  ["git@example.com:foo", scp],
  ["git@example.com:foo?subdir=/dir#v1", { ...scp, ref: "v1", subdirectory: "dir" }],
])("%s", (word, expected) => {
  expect(parseRepositoryAddress(word)).toEqual(expected);
});

test.each([
  "https://example.com/",
  "https://example.com/foo",
  "https://example.com/foo.git/",
  "https://example.com/foo.git.bar",
  "https://example.com/foo.git:#branch",
  "https://example.com/foo?x=.git",
  "github.com/moby/buildkit",
  "example.com/foo.git",
  "ftp://example.com/foo.git",
  "./.git",
  ".git",
  "foo.git",
  "a@b",
])("%s is not a repository's address", (word) => {
  expect(isRepositoryAddress(word)).toBe(false);
});

test.each(["https://u:p@example.com:99999/foo.git", "http://u:p@[/foo.git", "https://u:p@/foo.git#v1"])(
  "%s is invalid",
  (word) => {
    expect(() => parseRepositoryAddress(word)).toThrow(": invalid address");
    expect(() => parseRepositoryAddress(word)).not.toThrow("u:p");
  },
);

describe("refuses the invalid or contradictory query or fragment", () => {
  test.each([
    ["?ref=v1#v2", 'ref conflicts: "v2" and "v1"'],
    ["?ref=v1&tag=v2", 'ref conflicts: "v1" and "refs/tags/v2"'],
    ["?tag=v1#refs/heads/main", 'ref conflicts: "refs/heads/main" and "refs/tags/v1"'],
    ["?tag=v1&branch=v1", "branch conflicts with tag"],
    ["?subdir=a#:b", 'subdir conflicts: "b" and "a"'],
    ["?checksum=a&commit=b", 'checksum conflicts: "a" and "b"'],
    ["?ref=a&ref=a", 'query "ref" has multiple values'],
    ["?ref=", 'query "ref" has no value'],
    ["?mtime=never", 'invalid mtime value: "never" (expected checkout or commit)'],
    ["?submodules=maybe", 'invalid submodules value: "maybe"'],
    ["?invalid=123", 'unexpected query "invalid"'],
    ["#--upload-pack=/bin/sh", 'invalid git ref "--upload-pack=/bin/sh"'],
  ])("%s", (rest, message) => {
    expect(() => parseRepositoryAddress(`https://u:p@example.com/foo.git${rest}`)).toThrow(message);
    expect(() => parseRepositoryAddress(`https://u:p@example.com/foo.git${rest}`)).not.toThrow("u:p");
  });
});

test.each([
  ["https://u:p@example.com/foo.git", "https://example.com/foo.git"],
  ["git://u:p@example.com/foo", "git://example.com/foo"],
  ["git://example.com/foo@bar", "git://example.com/foo@bar"],
  ["ssh://u:p@example.com:22/foo", "ssh://u@example.com:22/foo"],
  ["ssh://u@example.com:22/foo:p@bar", "ssh://u@example.com:22/foo:p@bar"],
  ["git@example.com:foo", "git@example.com:foo"],
])("git's command line has no password: %s", (word, remote) => {
  const secrets = { values: new Map(), agents: new Map([["default", "/run/agent"]]) };
  const address = parseRepositoryAddress(word);
  const access: Partial<RemoteAccess> = { subject: "ADD", buildArgs: new Map(), secrets };
  expect(address && createGitClient(address, access as RemoteAccess).remote).toBe(remote);
});
