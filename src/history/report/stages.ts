import { type BuildStep, inOrder } from "../build-record.ts";

export interface StageOfBuild {
  name: string;
  /** The steps in the order of the Dockerfile. */
  steps: readonly BuildStep[];
  /** Milliseconds since the build's start. */
  start: number;
  end: number;
}

/** Groups steps by stage, in the order of the Dockerfile. */
export function orderedStages(steps: readonly BuildStep[]): StageOfBuild[] {
  const groups = Map.groupBy(inOrder(steps), ({ stage }) => stage?.index ?? -1);
  const isOnly = groups.size === 1;
  return [...groups]
    .sort(([one], [other]) => one - other)
    .map(([index, members]) => ({
      name: members[0]?.stage?.name ?? (index < 0 ? "before FROM" : isOnly ? "steps" : `stage ${index}`),
      steps: members,
      start: Math.min(...members.map(({ start }) => start)),
      end: Math.max(...members.map(({ end }) => end)),
    }));
}
