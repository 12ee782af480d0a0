/** Cases that `bough build --docker` builds as Docker does; of the others Docker alone is asked, until bough can build them. */
export const builtAlike: ReadonlySet<string> = new Set([
  "target",
  "target-is-first",
  "unneeded-stages",
  "workdirs",
]);
