/** Parsers for the databases of Debian's and Alpine's package managers. Pure. */

export interface InstalledPackage {
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
