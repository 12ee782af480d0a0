import type { ArgInstruction } from "../../dockerfile/instruction.ts";
import { extend } from "../../persistent-map.ts";
import type { Arguments, StageScope } from "../interpreter/scope.ts";

/**
 * Docker's precedence, which goes by the order of lines: of ENV and ARG the later one counts, `--build-arg` or not, and at a
 * FROM the ENV of the stage that it names. (With Docker's other rules BuildKit's code says so, and Docker does it.)
 */
export function startAsDocker<Stage extends StageScope>(stage: Stage): Stage {
  const named = [...stage.args].filter(([name]) => !stage.inherited?.has(name));
  const args: Arguments = new Map(
    named.map(([name, { value, overridesEnv }]) => [
      name,
      { value, overridesEnv: overridesEnv && !stage.env.has(name) },
    ]),
  );
  return { ...stage, args, ownsCmd: false };
}

/** Arguments of an ENV's names no longer override it. */
export function overrideArguments(args: Arguments, pairs: readonly { key: string }[]): Arguments {
  const overridden = pairs.flatMap(({ key }) => {
    const argument = args.get(key);
    return argument === undefined ? [] : ([[key, { ...argument, overridesEnv: false }]] as const);
  });
  return overridden.length === 0 ? args : extend(args, overridden);
}

/** Keeps what a name had where an ARG comes to no value. */
export function keepEarlierArguments(
  declarations: ArgInstruction["declarations"],
  before: Arguments,
  declared: Arguments,
): Arguments {
  return extend(
    declared,
    declarations.flatMap(({ key }) => {
      const argument = declared.get(key);
      if (argument?.value !== undefined) return [[key, { ...argument, overridesEnv: true }] as const];
      const earlier = before.get(key);
      return earlier === undefined ? [] : [[key, earlier] as const];
    }),
  );
}
