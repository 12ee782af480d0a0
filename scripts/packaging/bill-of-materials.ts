import type { BundledPackage } from "../licenses.ts";
import type { Source } from "./commit.ts";
import type { LockedPackage } from "./runtime.ts";

interface Material extends LockedPackage {
  name: string;
  license: string;
  kind: "library" | "platform";
}

/** Returns the bundled packages and the runtimes of all targets as a CycloneDX 1.6 document. */
export function renderBillOfMaterials(source: Source, materials: readonly Material[]): string {
  const root = `bough@${source.version}`;
  const components = materials
    .toSorted((one, other) => (referenceOf(one) < referenceOf(other) ? -1 : 1))
    .map((material) => ({
      type: material.kind,
      "bom-ref": referenceOf(material),
      name: material.name,
      version: material.version,
      hashes: [{ alg: "SHA-512", content: hexOf(material.integrity) }],
      licenses: [{ expression: material.license }],
      purl: referenceOf(material),
    }));
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: source.date.toISOString(),
      component: {
        type: "application",
        "bom-ref": root,
        name: "bough",
        version: source.version,
        licenses: [{ license: { id: "MIT" } }],
        properties: [{ name: "bough:commit", value: source.commit }],
      },
    },
    components,
    dependencies: [{ ref: root, dependsOn: components.map(({ purl }) => purl) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Returns bundled packages and runtimes with the versions that bun.lock pins. */
export function materialsOf(
  packages: readonly BundledPackage[],
  runtimes: readonly string[],
  locked: (name: string) => LockedPackage,
): Material[] {
  return [
    ...packages.map(({ name, license }) => ({ ...locked(name), name, license, kind: "library" as const })),
    // Bun itself is MIT; THIRD-PARTY-LICENSES.md lists what is linked into it.
    ...runtimes.map((name) => ({ ...locked(name), name, license: "MIT", kind: "platform" as const })),
  ];
}

function referenceOf({ name, version }: Material): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function hexOf(integrity: string): string {
  return Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
}
