import { BoughError } from "../../../errors.ts";
import { lines, type Message, wording } from "../../../messages/wording.ts";
import { failureOf } from "../../../terminal/failure.ts";
import { formatCount } from "../../../terminal/quantity.ts";
import type { ResolvedTarget } from "../resolve.ts";
import { withTarget } from "../target-error.ts";
import { failureHint, type TargetOutcomes } from "./target-outcome.ts";

/** The maximum number of errors, or of names, in a message. */
const maxShown = 100;
const maxHints = 5;

/** Returns one error for all failures of a `--keep-going` bake, in the order of the file; `undefined` if there is none. */
export function failureOfAll(
  targets: ReadonlyMap<string, ResolvedTarget>,
  ends: TargetOutcomes,
): BoughError | undefined {
  const ended = [...targets.values()].map((target) => ({ target, end: ends.get(target.name) }));
  const own = ended.flatMap(({ target, end }) =>
    end?.status === "failed" ? [failureOf(withTarget(end.error, target))] : [],
  );
  const blocked = ended.flatMap(({ target, end }) =>
    end?.status === "blocked" ? [`${target.name} (needs ${end.needs.join(", ")})`] : [],
  );
  if (own.length + blocked.length === 0) return undefined;
  const shown = own.slice(0, maxShown);
  const left = own.length - shown.length;
  const parts = [
    `${own.length} of ${formatCount(targets.size, "target")} failed`,
    ...(blocked.length === 0
      ? []
      : [`${blocked.length} not built, since a target that they need is not built`]),
  ];
  const message = lines([
    parts.join(", "),
    ...shown.map(({ wording }) => wording),
    ...(left > 0 ? [`... and ${left} more`] : []),
    ...(blocked.length === 0 ? [] : [`not built: ${listed(blocked)}`]),
  ]);
  return new BoughError(message ?? "", { hint: hintFor(shown, left + blocked.length > maxShown) });
}

/** Returns the hints of the failures, each distinct one once. */
function hintFor(failures: readonly BoughError[], isCut: boolean): Message | undefined {
  const hints = new Map(
    failures.flatMap((failure) => {
      const hint = failureHint(failure);
      return hint === undefined ? [] : [[`${hint}`, hint]];
    }),
  );
  return lines([
    ...[...hints.values()].slice(0, maxHints),
    isCut ? wording`${{ option: "results", value: "FILE.jsonl" }} writes a line for each target.` : undefined,
  ]);
}

/** Joins names in one line, and leaves out all after the first `maxShown`. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, maxShown);
  const left = names.length - shown.length;
  return `${shown.join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
}
