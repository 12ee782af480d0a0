/** skopeo's policy for accepted images also applies to images that bough itself reads. */
import { expect, test } from "bun:test";
import { parseImageSource } from "../../src/engine/import/image-source.ts";
import { requireAccepted, requireAcceptedRepository } from "../../src/engine/import/signature-policy.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const accept = [{ type: "insecureAcceptAnything" }];
const reject = [{ type: "reject" }];
const signed = [{ type: "signedBy", keyType: "GPGKeys", keyPath: "/key.gpg" }];

function homeWith(policy: unknown): string {
  const HOME = temporaryDirectory();
  const text = typeof policy === "string" ? policy : JSON.stringify(policy);
  writeFiles(HOME, { ".config/containers/policy.json": text });
  return HOME;
}

function check(url: string, policy: unknown): void {
  const HOME = homeWith(policy);
  const source = parseImageSource(url, { isServer: false });
  if (source.kind === "registry" || source.kind === "scratch") throw new Error("it has no such policy");
  requireAccepted(source, { HOME });
}

test.each<[string, string, unknown]>([
  ["accepts everything", "oci:/srv/a:1", { default: accept }],
  ["accepts the transport", "oci:/srv/a:1", { default: reject, transports: { oci: { "": accept } } }],
  [
    "accepts a directory above the image",
    "oci:/srv/a:1",
    { default: reject, transports: { oci: { "/srv": accept } } },
  ],
  [
    "accepts the image itself",
    "oci:/srv/a:1",
    { default: reject, transports: { oci: { "/srv/a:1": accept, "": reject } } },
  ],
  [
    "accepts archives",
    "docker-archive:/srv/a.tar",
    { default: reject, transports: { "docker-archive": { "": accept } } },
  ],
])("an image is accepted if the policy %s", (_, url, policy) => {
  expect(() => check(url, policy)).not.toThrow();
});

test.each<[string, string, unknown, string]>([
  ["rejects everything", "oci:/srv/a:1", { default: reject }, "does not accept oci:/srv/a:1"],
  [
    "rejects the transport",
    "dir:/srv/a",
    { default: accept, transports: { dir: { "": reject } } },
    "does not accept dir:/srv/a",
  ],
  [
    "rejects the directory",
    "oci:/srv/a:1",
    { default: accept, transports: { oci: { "/srv": reject } } },
    "does not accept",
  ],
  ["requires a signature", "oci-archive:/a.tar", { default: signed }, "does not accept"],
  ["has no requirements", "oci:/srv/a:1", { default: [] }, "does not accept"],
  ["is not JSON", "oci:/srv/a:1", "{", "is not JSON"],
])("an image is refused if the policy %s", (_, url, policy, message) => {
  expect(() => check(url, policy)).toThrow(message);
});

test.each<[string, boolean, object, unknown?]>([
  ["h.example/a/b", true, {}, accept],
  ["h.example/a/b", false, {}, reject],
  ["h.example/a/b", false, { "": signed }, accept],
  ["h.example/a/b", false, { "h.example/a/b": signed, "h.example": accept }],
  ["h.example/a/b", true, { "h.example/a": accept, "h.example": reject }],
  ["h.example/a/b", true, { "h.example/a/c": reject, "h.example/a/bc:1": reject }],
  ["h.example/a/b", false, { "h.example/a/b:1": reject }],
  ["h.example:5000/a", false, { "*.example": reject }],
  ["x.h.example/a", true, { "*.h.example": accept, "*.example": reject }],
  ["busybox", false, { "docker.io/library/busybox": reject }],
])(
  "layers of %s are fetched without an import: %p, with %j",
  (name, isAccepted, docker, fallback = accept) => {
    const HOME = homeWith({ default: fallback, transports: { docker } });
    const checking = expect(() => requireAcceptedRepository(`docker://${name}`, { HOME }));
    if (isAccepted) checking.not.toThrow();
    else checking.toThrow(`does not accept docker://${name} without checking signatures`);
  },
);
