import { BoughError } from "../../../errors.ts";
import { type Message, wording } from "../../../messages/wording.ts";
import { formatCount } from "../../../terminal/quantity.ts";
import type { ResolvedTarget } from "../resolve.ts";

/** A target that was not built: it has failed, or one that it is made of was not built. */
export type FailedTarget = { target: ResolvedTarget } & ({ message: string } | { needs: readonly string[] });

/** More errors than anybody reads. */
const maxShown = 100;

/** Returns the error of a bake that was to go on after failures: all of them, in the order of the file. */
export function failureOfAll(
  given: readonly FailedTarget[],
  targets: ReadonlyMap<string, ResolvedTarget>,
): BoughError {
  const order = new Map([...targets.keys()].map((name, at) => [name, at]));
  const placeOf = ({ target }: FailedTarget) => order.get(target.name) ?? 0;
  const failed = given.toSorted((one, other) => placeOf(one) - placeOf(other));
  const own = failed.flatMap((each) => ("message" in each ? [each] : []));
  const blocked = failed.flatMap((each) => ("needs" in each ? [each] : []));
  const shown = own.slice(0, maxShown).map(({ message }) => message);
  const left = own.length - shown.length;
  const others = blocked.map(({ target, needs }) => `${target.name} (needs ${needs.join(", ")})`);
  const parts = [
    `${own.length} of ${formatCount(targets.size, "target")} failed`,
    ...(blocked.length === 0 ? [] : [`${blocked.length} not built, since they need one that is not built`]),
  ];
  const message = [
    parts.join(", "),
    ...shown,
    ...(left > 0 ? [`... and ${left} more`] : []),
    ...(others.length === 0 ? [] : [`not built: ${listed(others)}`]),
  ].join("\n");
  return new BoughError(message, { hint: hintFor(left + others.length > maxShown) });
}

function hintFor(isCut: boolean): Message | undefined {
  return isCut
    ? wording`${{ option: "results", value: "FILE.jsonl" }} writes a line for each target.`
    : undefined;
}

/** Returns names in one line, which stays readable for thousands. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, maxShown);
  const left = names.length - shown.length;
  return `${shown.join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
}
