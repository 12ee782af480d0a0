/** The policy of which images may be taken holds for those that skopeo is not asked for, too. */
import { expect, test } from "bun:test";
import { parseImageSource } from "../../src/engine/import/image-source.ts";
import { requireAccepted } from "../../src/engine/import/signature-policy.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const accept = [{ type: "insecureAcceptAnything" }];
const reject = [{ type: "reject" }];
const signed = [{ type: "signedBy", keyType: "GPGKeys", keyPath: "/key.gpg" }];

function check(url: string, policy: unknown): void {
  const HOME = temporaryDirectory();
  const text = typeof policy === "string" ? policy : JSON.stringify(policy);
  writeFiles(HOME, { ".config/containers/policy.json": text });
  const source = parseImageSource(url, "all");
  if (source.kind === "registry" || source.kind === "scratch") throw new Error("it has no such policy");
  requireAccepted(source, { HOME });
}

test.each<[string, string, unknown]>([
  ["everything", "oci:/srv/a:1", { default: accept }],
  ["the kind", "oci:/srv/a:1", { default: reject, transports: { oci: { "": accept } } }],
  ["a directory above it", "oci:/srv/a:1", { default: reject, transports: { oci: { "/srv": accept } } }],
  [
    "the image itself",
    "oci:/srv/a:1",
    { default: reject, transports: { oci: { "/srv/a:1": accept, "": reject } } },
  ],
  [
    "archives",
    "docker-archive:/srv/a.tar",
    { default: reject, transports: { "docker-archive": { "": accept } } },
  ],
])("a policy that accepts %s", (_, url, policy) => {
  expect(() => check(url, policy)).not.toThrow();
});

test.each<[string, string, unknown, string]>([
  ["nothing", "oci:/srv/a:1", { default: reject }, "does not accept oci:/srv/a:1"],
  [
    "no such kind",
    "dir:/srv/a",
    { default: accept, transports: { dir: { "": reject } } },
    "does not accept dir:/srv/a",
  ],
  [
    "no such directory",
    "oci:/srv/a:1",
    { default: accept, transports: { oci: { "/srv": reject } } },
    "does not accept",
  ],
  ["what is signed", "oci-archive:/a.tar", { default: signed }, "does not accept"],
  ["no requirement at all", "oci:/srv/a:1", { default: [] }, "does not accept"],
  ["nobody knows what", "oci:/srv/a:1", "{", "is not JSON"],
])("a policy that accepts %s", (_, url, policy, message) => {
  expect(() => check(url, policy)).toThrow(message);
});
