import { describe, expect, test } from "bun:test";
import { BoughError } from "../../src/errors.ts";
import { areEqualNames, otherName, parseReference, parseTag } from "../../src/service/images/reference.ts";

const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
const uuid = "3F2504E0-4F89-11D3-9A0C-0305E82C3301";

describe("the address and the tag of an import for a reference:", () => {
  test.each([
    ["alpine", "docker://docker.io/library/alpine:latest", "alpine:latest"],
    ["alpine:3.20", "docker://docker.io/library/alpine:3.20", "alpine:3.20"],
    ["library/alpine", "docker://docker.io/library/alpine:latest", "library/alpine:latest"],
    ["team/app:1", "docker://docker.io/team/app:1", "team/app:1"],
    ["docker.io/alpine", "docker://docker.io/library/alpine:latest", "docker.io/alpine:latest"],
    ["index.docker.io/alpine", "docker://docker.io/library/alpine:latest", "index.docker.io/alpine:latest"],
    ["registry.example/app", "docker://registry.example/app:latest", "registry.example/app:latest"],
    [
      "registry.example:5000/team/app:2",
      "docker://registry.example:5000/team/app:2",
      "registry.example:5000/team/app:2",
    ],
    ["localhost/app", "docker://localhost/app:latest", "localhost/app:latest"],
    ["localhost:5000/app", "docker://localhost:5000/app:latest", "localhost:5000/app:latest"],
    ["a__b/c-d.e", "docker://docker.io/a__b/c-d.e:latest", "a__b/c-d.e:latest"],
    // A digest is enough: a tag next to it is dropped, and the image gets no tag.
    [`alpine@${digest}`, `docker://docker.io/library/alpine@${digest}`, undefined],
    [`alpine:3.20@${digest}`, `docker://docker.io/library/alpine@${digest}`, undefined],
    ["quay.example/app:RELEASE.1", "docker://quay.example/app:RELEASE.1", "quay.example/app:RELEASE.1"],
    // References with a transport.
    ["docker://docker.io/library/alpine:3.20", "docker://docker.io/library/alpine:3.20", "alpine:3.20"],
    ["docker://team/app", "docker://docker.io/team/app:latest", "team/app:latest"],
    ["docker://localhost:5000/app:1", "docker://localhost:5000/app:1", "localhost:5000/app:1"],
    [`docker://alpine@${digest}`, `docker://docker.io/library/alpine@${digest}`, undefined],
    // Images with the name of a transport.
    ["oci", "docker://docker.io/library/oci:latest", "oci:latest"],
    ["dir:1.0", "docker://docker.io/library/dir:1.0", "dir:1.0"],
  ])("%s", (text, url, tag) => {
    const [, pinned] = text.split("@");
    const parsed = parseReference(text);
    expect(parsed).toMatchObject({ kind: "registry", url, tag, digest: pinned });
    if (parsed.kind !== "registry") return;
    const { address, reference } = parsed;
    expect(address + (pinned === undefined ? ":" : "@") + reference).toBe(url);
    expect(reference).not.toContain("/");
  });

  test.each([
    ["oci:/srv/images/base", "oci", "/srv/images/base", "", "base:latest"],
    ["oci:/srv/images/base:1.0", "oci", "/srv/images/base", ":1.0", "base:1.0"],
    ["oci:./Base_Image", "oci", "./Base_Image", "", "base_image:latest"],
    ["oci-archive:/srv/base.tar", "oci-archive", "/srv/base.tar", "", "base:latest"],
    ["docker-archive:/srv/base.tar.gz", "docker-archive", "/srv/base.tar.gz", "", "base:latest"],
    [
      "docker-archive:/srv/base.tar:team/app:2",
      "docker-archive",
      "/srv/base.tar",
      ":team/app:2",
      "team/app:2",
    ],
    ["dir:/srv/base/", "dir", "/srv/base/", "", "base:latest"],
    ["dir:/srv/base:1", "dir", "/srv/base:1", "", "base-1:latest"],
  ])("%s is on this machine", (text, transport, path, suffix, tag) => {
    expect(parseReference(text)).toEqual({ kind: "local", url: text, tag, transport, path, suffix });
  });

  test.each([
    "docker-daemon:app:1",
    "containers-storage:app",
    "ostree:app",
    "sif:./app.sif",
    "tarball:/app.tar",
  ])("%s has an unsupported transport", (text) => {
    expect(() => parseReference(text)).toThrow(
      `importing from ${text.slice(0, text.indexOf(":") + 1)} is not supported`,
    );
  });

  test("a UUID and tag: name images of the service, which need no import", () => {
    expect(parseReference(uuid)).toEqual({ kind: "uuid", uuid: uuid.toLowerCase() });
    expect(parseReference("tag:app:dev")).toEqual({ kind: "tag", tag: "app:dev" });
  });
});

test.each([
  ["", "empty"],
  ["two words", "space"],
  ["MyImage", "lowercase"],
  ["app:", "not a valid repository name"],
  [":1", "not a valid repository name"],
  ["a//b", "not a valid repository name"],
  ["-app", "not a valid repository name"],
  ["registry.example/", "not a valid repository name"],
  ["bad_host.example:port/app", "not a valid registry host"],
  ["app@sha256:abc", "not a valid digest"],
  ["app:a:b", "not a valid repository name"],
])("%p is not a reference: %s", (text, reason) => {
  expect(() => parseReference(text)).toThrow(reason);
  expect(() => parseReference(text)).toThrow(BoughError);
});

test.each([
  "/tmp/base.tar",
  "./base",
  "../images/base.tar.gz",
  "images/Base.tgz",
  "~/base.oci",
  "oci:layout:3.20",
])("%s looks like a path, and the hint has the right form", (text) => {
  const message = expect.stringContaining("not an image reference");
  const hint = expect.stringContaining("docker-archive:/path");
  expect(() => parseReference(text)).toThrow(expect.objectContaining({ message, hint }));
});

describe("--tag", () => {
  test.each([
    ["app", "app:latest"],
    ["app:1.0", "app:1.0"],
    ["team/app", "team/app:latest"],
    ["localhost:5000/app", "localhost:5000/app:latest"],
    ["localhost:5000/app:1", "localhost:5000/app:1"],
    ["a_b-c.d:e", "a_b-c.d:e"],
    ["a".repeat(255), `${"a".repeat(255)}:latest`],
    ["app:1.0-SNAPSHOT", "app:1.0-SNAPSHOT"],
    ["app:_", "app:_"],
    [`app:${"V".repeat(128)}`, `app:${"V".repeat(128)}`],
    ["a__b/c--d.e:RC1", "a__b/c--d.e:RC1"],
    ["Registry.example:5000/app:V2", "Registry.example:5000/app:V2"],
  ])("%s is %s", (text, tag) => {
    expect(parseTag(text)).toBe(tag);
  });

  test.each([
    ["", "empty"],
    ["App", "repository name must be lowercase; did you mean app:latest?"],
    ["localhost:5000/My/App:RC1", "did you mean localhost:5000/my/app:RC1?"],
    ["app:1 0", '" " is not allowed'],
    ["app@1", '"@" is not allowed'],
    ["äpp", "is not allowed"],
    ["app:", '"" is not valid after the colon'],
    ["app:-1", '"-1" is not valid after the colon'],
    ["shop:1:2", '"shop:1" is not a valid repository name'],
    ["host:port/app:1", "host:port is not a valid registry host"],
    ["/app", '"/app" is not a valid repository name'],
    ["app..x", '"app..x" is not a valid repository name'],
    ["a_-b", '"a_-b" is not a valid repository name'],
    ["a".repeat(256), "256 characters"],
    [`app:${"1".repeat(129)}`, "129 characters"],
  ])("%p is refused: %s", (text, reason) => {
    expect(() => parseTag(text)).toThrow(reason);
  });
});

describe("Docker's other name of an image:", () => {
  test.each([
    ["alpine:3.20", "docker.io/library/alpine:3.20"],
    ["docker.io/library/alpine:3.20", "alpine:3.20"],
    ["docker.io/alpine:3.20", "alpine:3.20"],
    ["index.docker.io/alpine:3.20", "alpine:3.20"],
    ["library/alpine:3.20", "alpine:3.20"],
    ["alpine", "docker.io/library/alpine:latest"],
    ["docker.io/alpine", "alpine:latest"],
    ["docker.io/team/app:1", "team/app:1"],
    ["team/app:1", "docker.io/team/app:1"],
    // Docker shortens only `library/NAME`, and another host must not be made of a repository's name.
    ["docker.io/library/a/b:1", "library/a/b:1"],
    ["index.docker.io/a.b/c:1", "docker.io/a.b/c:1"],
  ])("%s: %s", (name, other) => expect(otherName(name)).toBe(other));

  test.each([
    ["docker.io/a.b/c:1"],
    ["registry.example/library/alpine:3.20"],
    ["localhost/alpine:3.20"],
    ["tag:alpine:3.20"],
    [`alpine@${digest}`],
    ["docker://alpine:3.20"],
    ["a:b:c"],
    [uuid],
  ])("none for %s", (name) => expect(otherName(name)).toBeUndefined());

  test.each([
    ["alpine", "alpine:latest", true],
    ["docker.io/alpine", "library/alpine", true],
    ["alpine:3.20", "alpine:3.21", false],
    ["registry.example/alpine", "alpine", false],
    ["-odd", "-odd", true],
  ])("%s and %s: %p", (one, other, expected) => expect(areEqualNames(one, other)).toBe(expected));
});
