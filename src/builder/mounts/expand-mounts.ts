import type { Mount, RunInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { type MountSpec, readMounts } from "./mount-spec.ts";

/** Returns the mounts of a RUN. Docker replaces variables in every field but `from`. */
export function expandMounts(
  { mounts }: Pick<RunInstruction, "mounts">,
  { lookup, escape, workdir }: { lookup: Lookup; escape: EscapeCharacter; workdir: string },
): MountSpec[] {
  return readMounts(
    mounts.map((mount) => replaceWords(mount, (word) => expandWord(word, lookup, escape))),
    workdir,
  );
}

function replaceWords(mount: Mount, expand: (word: string) => string): Mount {
  const text = (word: string | undefined) => (word === undefined ? undefined : expand(word));
  const flag = (word: string | true | undefined) => (word === true ? true : text(word));
  return {
    type: expand(mount.type).toLowerCase(),
    id: text(mount.id),
    from: mount.from,
    source: text(mount.source),
    target: text(mount.target),
    readonly: flag(mount.readonly),
    required: flag(mount.required),
    sharing: text(mount.sharing),
    mode: text(mount.mode),
    uid: text(mount.uid),
    gid: text(mount.gid),
    size: text(mount.size),
    env: text(mount.env),
  };
}
