/** `bough build --sbom`: the packages that an image's package managers have recorded. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseApkInstalled, parseDpkgStatus } from "../../src/cli/export/sbom.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOfLayout } from "../support/image-spec.ts";
import { problemsOf, type Schema } from "../support/json-schema.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const home = temporaryDirectory();

const dpkg = [
  "Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2.15-2+b2\nDescription: shell\n Version: 9\n",
  "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n",
].join("\n");
const apk = "C:Q1\nP:busybox\nV:1.36.1-r5\nA:x86_64\nF:bin\nA:not this\n\nP:musl\nV:1.2.4-r2\nA:x86_64\n";

describe("a database of packages", () => {
  test("of dpkg, without removed packages", () => {
    expect(parseDpkgStatus(dpkg)).toEqual([
      { manager: "deb", name: "bash", version: "5.2.15-2+b2", architecture: "amd64" },
    ]);
    const file = "Package: tzdata\nVersion: 2024a\nArchitecture: all\n";
    expect(parseDpkgStatus(file)).toHaveLength(1);
  });

  test("of apk", () => {
    expect(parseApkInstalled(apk)).toEqual([
      { manager: "apk", name: "busybox", version: "1.36.1-r5", architecture: "x86_64" },
      { manager: "apk", name: "musl", version: "1.2.4-r2", architecture: "x86_64" },
    ]);
  });

  test.each(["", "\n\n", "Package:\n", "no field"])("without packages: %j", (text) => {
    expect([...parseDpkgStatus(text), ...parseApkInstalled(text)]).toEqual([]);
  });
});

const bough = (...words: string[]) =>
  runBough(["--local", "-q", ...words], {
    workingDirectory: places,
    environment: { BOUGH_HOME: home, SOURCE_DATE_EPOCH: "1700000000" },
  });

beforeAll(async () => {
  const base = await makeBusyboxLayout(join(places, "base"), {
    prepare: (root) =>
      writeFiles(root, {
        "etc/os-release": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
        "var/lib/dpkg/status": dpkg,
        "var/lib/dpkg/status.d/tzdata": "Package: tzdata\nVersion: 2024a\nArchitecture: all\n",
        "var/lib/dpkg/status.d/tzdata.md5sums": "0 x\n",
        "app/node_modules/left-pad/package.json": '{"name": "left-pad", "version": "1.3.0"}',
        "app/node_modules/left-pad/test/package.json": '{"name": "not-installed", "version": "1.0.0"}',
        "app/node_modules/@scope/name/package.json": '{"name": "@scope/name", "version": "2.0.0-rc.1+build"}',
        "app/node_modules/@scope/name/node_modules/left-pad/package.json":
          '{"name": "left-pad", "version": "1.1.0"}',
        "usr/lib/node_modules/left-pad/package.json": '{"name": "left-pad", "version": "1.3.0"}',
        "app/node_modules/.package-lock.json": '{"name": "app", "version": "1.0.0"}',
        "app/node_modules/no-version/package.json": '{"name": "no-version"}',
        "app/node_modules/damaged/package.json": "{",
        "app/package.json": '{"name": "app", "version": "1.0.0"}',
      }),
  });
  await bough("images", "import", base, "--tag", "base:1");
  writeFiles(join(places, "context"), {
    Dockerfile: [
      "FROM base:1",
      // The archive of the image has the first name's content, and the other name as a link.
      `RUN mkdir -p /store /zz/node_modules/linked && echo '{"name": "linked", "version": "0.1.0"}' > /store/1 && ln /store/1 /zz/node_modules/linked/package.json`,
    ].join("\n"),
  });
  writeFiles(join(places, "rpm"), {
    Dockerfile: "FROM base:1\nRUN mkdir -p /var/lib/rpm; > /var/lib/rpm/x\n",
  });
});

const text: Schema = { type: "string" };
/** The part of SPDX 2.3's schema that bough uses. */
const document: Schema = {
  type: "object",
  required: [
    ...["spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"],
    ...["packages", "relationships"],
  ],
  properties: {
    spdxVersion: { const: "SPDX-2.3" },
    dataLicense: { const: "CC0-1.0" },
    SPDXID: { const: "SPDXRef-DOCUMENT" },
    documentNamespace: { type: "string", pattern: "^[a-z]+:[^#]+$" },
    creationInfo: {
      type: "object",
      required: ["created", "creators"],
      properties: { created: { type: "string", pattern: "^[0-9-]+T[0-9:]+Z$" } },
    },
    packages: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["SPDXID", "name", "downloadLocation"],
        properties: { SPDXID: { type: "string", pattern: "^SPDXRef-[A-Za-z0-9.-]+$" }, name: text },
      },
    },
    relationships: {
      type: "array",
      items: { type: "object", required: ["spdxElementId", "relationshipType", "relatedSpdxElement"] },
    },
  },
};

test("is stored beside the image, also together with --provenance", async () => {
  const words = ["build", "context", "--sbom", "--provenance", "--tag", "app:1"];
  const ended = await bough(...words, "-o", "type=oci,dest=layout,tar=false", "-o", "type=oci,dest=one.tar");
  expect(ended.stderr).toBe("");
  expect(problemsOfLayout(join(places, "layout"))).toEqual([]);
  const blobs = join(places, "layout/blobs/sha256");
  const statements = readdirSync(blobs)
    .map((name) => readFileSync(join(blobs, name), "latin1"))
    .filter((content) => content.startsWith('{"_type"'))
    .map((content) => JSON.parse(content));
  expect(statements.map(({ predicateType }) => predicateType).sort()).toEqual([
    "https://slsa.dev/provenance/v1",
    "https://spdx.dev/Document",
  ]);
  const { predicate } = statements.find(({ predicateType }) => predicateType.includes("spdx"));
  expect(problemsOf(predicate, document)).toEqual([]);
  const urls = predicate.packages
    .slice(1)
    .map(
      ({ externalRefs: [first] }: { externalRefs: { referenceLocator: string }[] }) =>
        first?.referenceLocator,
    );
  expect(urls).toEqual([
    "pkg:deb/debian/bash@5.2.15-2%2Bb2?arch=amd64&distro=debian-12",
    "pkg:deb/debian/tzdata@2024a?arch=all&distro=debian-12",
    "pkg:npm/%40scope/name@2.0.0-rc.1%2Bbuild",
    "pkg:npm/left-pad@1.1.0",
    "pkg:npm/left-pad@1.3.0",
    "pkg:npm/linked@0.1.0",
  ]);
  await bough(...words, "-o", "type=oci,dest=two.tar");
  expect(readFileSync(join(places, "two.tar")).equals(readFileSync(join(places, "one.tar")))).toBe(true);
});

test("refuses an image with an rpm database", async () => {
  const { exitCode, stderr } = await bough("build", "rpm", "--sbom", "-o", "type=oci,dest=rpm.tar");
  expect(stderr).toContain("--sbom: the image has an rpm database");
  expect(exitCode).toBe(1);
  expect(readdirSync(places)).not.toContain("rpm.tar");
});

test("is refused without an output that can have it", async () => {
  const { exitCode, stderr } = await bough("build", "context", "--sbom");
  expect(stderr).toContain("--sbom needs an image that is written or pushed");
  expect(exitCode).toBe(2);
});
