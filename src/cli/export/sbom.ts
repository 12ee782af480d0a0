import type { TreeService } from "../../builder/operations/image-entries.ts";
import { BoughError } from "../../errors.ts";
import type { Attestation } from "../../image/attestation-manifest.ts";
import type { Service } from "../../service/client.ts";
import { version } from "../../version.ts";
import { findNpmPackages, npmUrl } from "./npm-packages.ts";
import { packageUrl, type Subject, statementOf } from "./statement.ts";

type Files = TreeService & Pick<Service, "readFile" | "listEntries" | "address">;

/**
 * Finds the packages that an image's package managers have recorded as installed, and those of npm.
 *
 * @throws BoughError if there is a package database that bough can't read: a list without its packages would be wrong
 */
export async function findPackages(service: Files, uuid: string): Promise<ListedPackage[]> {
  const read = (path: string) => readText(service, uuid, path);
  for (const path of rpmDatabases) {
    if (((await service.listEntries(uuid, path))?.size ?? 0) === 0) continue;
    throw new BoughError("--sbom: the image has an rpm database, which is not supported", {
      hint: "Leave --sbom out, and list the packages with another tool.",
    });
  }
  const release = parseRelease((await read("/etc/os-release")) ?? (await read("/usr/lib/os-release")) ?? "");
  const packages = [
    ...parseDpkgStatus((await read("/var/lib/dpkg/status")) ?? ""),
    ...(await readStatusFiles(service, uuid)),
    ...parseApkInstalled(
      (await read("/lib/apk/db/installed")) ?? (await read("/usr/lib/apk/db/installed")) ?? "",
    ),
  ];
  return [
    ...packages.map((each): ListedPackage => ({ ...each, url: packageUrlOf(each, release) })),
    ...(await findNpmPackages(service, uuid)).map((each) => ({ ...each, url: npmUrl(each) })),
  ];
}

/** Lists packages in SPDX 2.3. */
export function describePackages(packages: readonly ListedPackage[], subject: Subject): Attestation {
  return statementOf(subject, "https://spdx.dev/Document", documentOf(packages, subject));
}

const rpmDatabases = ["/var/lib/rpm", "/usr/lib/sysimage/rpm"];
const statusDirectory = "/var/lib/dpkg/status.d";

async function readStatusFiles(service: Files, uuid: string): Promise<InstalledPackage[]> {
  const entries = await service.listEntries(uuid, statusDirectory);
  const names = [...(entries?.keys() ?? [])].filter((name) => !name.endsWith(".md5sums")).sort();
  const found: InstalledPackage[] = [];
  for (const name of names)
    found.push(...parseDpkgStatus((await readText(service, uuid, `${statusDirectory}/${name}`)) ?? ""));
  return found;
}

async function readText(service: Files, uuid: string, path: string): Promise<string | undefined> {
  const bytes = await service.readFile(uuid, path);
  if (bytes === "unsupported")
    throw new BoughError(`--sbom: ${service.address} does not support reading files of an image`);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}

type Release = ReadonlyMap<string, string>;

/** https://www.freedesktop.org/software/systemd/man/latest/os-release.html */
function parseRelease(text: string): Release {
  return new Map(
    [...text.matchAll(/^([A-Z_]+)=(?:"(.*)"|'(.*)'|(.*))$/gm)].map(
      ([, name = "", double, single, plain]): [string, string] => [name, double ?? single ?? plain ?? ""],
    ),
  );
}

export interface ListedPackage {
  name: string;
  version: string;
  /** https://github.com/package-url/purl-spec */
  url: string;
}

/** https://spdx.github.io/spdx-spec/v2.3/ */
function documentOf(packages: readonly ListedPackage[], { image, digest, names }: Subject) {
  const unknown = { downloadLocation: "NOASSERTION", filesAnalyzed: false };
  const [name = "image"] = names;
  const listed = packages.map((each, index) => ({
    SPDXID: `SPDXRef-Package-${index + 1}`,
    name: each.name,
    versionInfo: each.version,
    ...unknown,
    externalRefs: [purlReference(each.url)],
  }));
  const root = {
    SPDXID: "SPDXRef-Image",
    name,
    versionInfo: digest,
    ...unknown,
    externalRefs: names.map((name) => purlReference(packageUrl(name, image.platform))),
  };
  const relation = (spdxElementId: string, relationshipType: string, relatedSpdxElement: string) => ({
    spdxElementId,
    relationshipType,
    relatedSpdxElement,
  });
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name,
    documentNamespace: `urn:bough:spdx:${digest}`,
    creationInfo: {
      created: image.created.replace(/\.\d+Z$/, "Z"),
      creators: [`Tool: bough-${version}`],
      comment: "Packages that dpkg and apk list as installed, and those of npm; no others were looked for.",
    },
    packages: [root, ...listed],
    relationships: [
      relation("SPDXRef-DOCUMENT", "DESCRIBES", root.SPDXID),
      ...listed.map(({ SPDXID }) => relation(root.SPDXID, "CONTAINS", SPDXID)),
    ],
  };
}

function purlReference(referenceLocator: string) {
  return { referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator };
}

const usualVendors = { deb: "debian", apk: "alpine" } as const;

function packageUrlOf({ manager, name, version, architecture }: InstalledPackage, release: Release): string {
  const vendor = release.get("ID") ?? usualVendors[manager];
  const distro = [vendor, release.get("VERSION_ID")].filter((part) => part !== undefined).join("-");
  const qualifiers = new URLSearchParams({
    ...(architecture === undefined ? {} : { arch: architecture }),
    distro,
  });
  return `pkg:${manager}/${encodeURIComponent(vendor)}/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${qualifiers}`;
}

interface InstalledPackage {
  manager: "deb" | "apk";
  name: string;
  version: string;
  architecture: string | undefined;
}

/**
 * Parses dpkg's `status`, or a file of `status.d`, which images without a package manager have instead.
 * https://man7.org/linux/man-pages/man5/deb822.5.html
 */
export function parseDpkgStatus(text: string): InstalledPackage[] {
  return paragraphsOf(text).flatMap((lines) => {
    const fields = fieldsOf(lines, /^([A-Za-z][\w-]*):[ \t]*(.*)$/);
    // A removed package's configuration may remain.
    const isInstalled = fields.get("status")?.endsWith(" installed") !== false;
    return isInstalled
      ? packageOf("deb", fields, { name: "package", version: "version", architecture: "architecture" })
      : [];
  });
}

/** Parses `/lib/apk/db/installed`. https://wiki.alpinelinux.org/wiki/Apk_spec */
export function parseApkInstalled(text: string): InstalledPackage[] {
  return paragraphsOf(text).flatMap((lines) => {
    const fields = fieldsOf(lines, /^([A-Za-z]):(.*)$/, (name) => name);
    return packageOf("apk", fields, { name: "P", version: "V", architecture: "A" });
  });
}

function packageOf(
  manager: InstalledPackage["manager"],
  fields: ReadonlyMap<string, string>,
  names: { name: string; version: string; architecture: string },
): InstalledPackage[] {
  const [name, version] = [fields.get(names.name), fields.get(names.version)];
  if (name === undefined || version === undefined) return [];
  return [{ manager, name, version, architecture: fields.get(names.architecture) }];
}

function paragraphsOf(text: string): string[][] {
  return text.split(/\n[ \t]*\n/).map((paragraph) => paragraph.split("\n"));
}

/** Keeps the first of equal names: later ones in apk's paragraphs belong to files. */
function fieldsOf(
  lines: readonly string[],
  pattern: RegExp,
  nameOf: (name: string) => string = (name) => name.toLowerCase(),
): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = pattern.exec(line) ?? [];
    if (name !== undefined && value !== undefined && !fields.has(nameOf(name)))
      fields.set(nameOf(name), value.trim());
  }
  return fields;
}
