import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import { asRecord, asText, parseRecord } from "../../service/http/json.ts";
import { isStatement } from "../../signatures/statement.ts";
import { listWords } from "../command-line/option-values.ts";
import type { ScanResult } from "../export/attest.ts";

/** What a scanner may say: BuildKit takes lists of packages only. */
const predicateTypes = ["https://spdx.dev/Document", "https://cyclonedx.org/bom"];

/**
 * Reads the statements that a scanner has written, in the order of their names. They have no subject yet, or another one than the
 * image.
 */
export async function readScanResults(
  service: Pick<Service, "listEntries" | "readFile">,
  image: string,
  directory: string,
  scanner: string,
): Promise<ScanResult[]> {
  const entries = [...((await service.listEntries(image, directory)) ?? [])];
  const names = entries.flatMap(([name, { type }]) =>
    type === "file" && name.endsWith(".json") ? name : [],
  );
  const results: ScanResult[] = [];
  for (const name of names.sort()) {
    const bytes = await service.readFile(image, `${directory}/${name}`);
    results.push(readStatement(bytes instanceof Uint8Array ? bytes : new Uint8Array(), name, scanner));
  }
  return results;
}

function readStatement(bytes: Uint8Array, name: string, scanner: string): ScanResult {
  const statement = parseRecord(bytes);
  const [predicateType = "", predicate] = [asText(statement?.predicateType), asRecord(statement?.predicate)];
  const isPredicate = isStatement(statement) && predicate !== undefined;
  if (isPredicate && predicateTypes.includes(predicateType)) return { predicateType, predicate };
  throw new BoughError(
    isPredicate
      ? `--sbom: ${name} of the scanner ${scanner} has the predicate ${JSON.stringify(predicateType)}, not a list of packages`
      : `--sbom: ${name} of the scanner ${scanner} is not an in-toto statement`,
    { hint: `Predicates are ${listWords(predicateTypes, "and")}.` },
  );
}
