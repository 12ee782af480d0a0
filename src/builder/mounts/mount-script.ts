import { posix } from "node:path";
import { escapeGlob } from "../../context/patterns/glob.ts";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { defaultPath } from "../../image/config.ts";
import { wording } from "../../messages/wording.ts";
import { quote } from "../../programs/quote.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { type ExpandedCommand, numericUser } from "../commands/command.ts";
import { stageImageCopy } from "../copy/from-image.ts";
import type { BuildJob } from "../job.ts";
import { parentDirectories } from "../state/path-in-image.ts";
import { addStaged, type Staged, type StagedEntry } from "../state/staged.ts";
import { type StageState, startStage } from "../state/state.ts";
import type { RunMount, RunMounts } from "./run-mounts.ts";

/** The maximum number of files: each one is sent, moved into place and removed. Larger directories need a service with mounts. */
const maxFiles = 1000;

/**
 * Stages the contents of mounts for a service that has none: below `store`, under each mount's number. The script moves them into
 * place from there.
 */
export async function stageMounts(
  { mounts, instruction }: RunMounts,
  { store, stage }: { store: string; stage: StageState },
  build: BuildJob,
): Promise<StageState> {
  let { staged } = stage;
  for (const [index, mount] of mounts.entries()) {
    const files = await contentOf(
      mount,
      { instruction, place: posix.join(store, String(index)), stage },
      build,
    );
    const count = [...files.values()].filter(({ type }) => type !== "directory").length;
    if (count > maxFiles)
      throw new BoughError(
        `--mount=type=${mount.spec.type},target=${mount.spec.target}: the service does not support mounts; bough copies the files instead, but at most ${maxFiles}, not ${count}`,
        {
          hint: wording`Mount a smaller directory, COPY the files, or build on the embedded engine with ${{ option: "local" }}.`,
        },
      );
    staged = addStaged(staged, files);
  }
  return { ...stage, staged };
}

async function contentOf(
  { spec, source }: RunMount,
  { instruction, place, stage }: { instruction: RunInstruction; place: string; stage: StageState },
  build: BuildJob,
): Promise<Staged> {
  if (source === undefined) return new Map();
  if (source.kind === "files")
    return new Map(
      [...source.files]
        // The script makes the directory itself: one operation less.
        .filter(([path, { type }]) => path !== "" || type !== "directory")
        .map(([path, entry]): [string, StagedEntry] => [posix.join(place, path), entry]),
    );
  const path = spec.type === "bind" || spec.type === "cache" ? spec.source : "/";
  const words = {
    paths: [escapeGlob(path)],
    destination: place,
    exclude: [],
    chown: "",
    changeMode: (mode: number) => mode,
  };
  const copied = await stageImageCopy(
    { ...instruction, parents: false },
    { words, source },
    startStage(stage.layer),
    build,
  );
  return copied.staged;
}

/**
 * Wraps the request's command in a script that puts the mounts in place, runs the command as `user`, also one that `su` does not
 * know, and removes the mounts, so that they are not in the result. Existing files are moved aside meanwhile. The command's exit
 * code is kept.
 */
export function mountByScript(
  request: InstanceRequest,
  {
    mounts,
    store,
    user,
    command,
  }: { mounts: readonly RunMount[]; store: string; user: string | undefined; command: ExpandedCommand },
): InstanceRequest {
  const { uid: _, gid: __, ...rest } = request;
  const script = mountScript(mounts, {
    store,
    cwd: request.cwd,
    program: programOf(command, user, store),
  });
  return {
    ...rest,
    command: "/bin/sh",
    args: ["-c", script],
    shell: false,
    cwd: "/",
  };
}

/** Returns the script. Its variables have names that no program uses, because the command inherits them. */
function mountScript(
  mounts: readonly RunMount[],
  { store, cwd, program }: { store: string; cwd: string; program: string },
): string {
  const taken = mounts.flatMap((mount, index) =>
    mount.spec.type === "secret" || mount.spec.type === "ssh" ? [] : [{ mount, index }],
  );
  return [
    prelude,
    `mkdir -p ${store}/was`,
    // Made in the image, where it stays, and again below, in case a mount hides it.
    `mkdir -p ${quote(cwd)}`,
    ...taken.flatMap(({ mount, index }) => placing(mount, index, store)),
    `mkdir -p ${quote(cwd)}`,
    `( cd ${quote(cwd)} && {`,
    program,
    "} ) < /dev/null && _bough_code=0 || _bough_code=$?",
    ...restoringPasswd(store),
    ...taken.reverse().flatMap(({ mount, index }) => removing(mount, index, store)),
    `rm -rf ${store}`,
    'exit "$_bough_code"',
    "",
  ].join("\n");
}

/** Appends the default PATH, so that the script finds its programs whatever the image's PATH is. */
const prelude = `set -e
umask 022
_bough_path=\${PATH-}
PATH=$PATH:${defaultPath}`;

function placing({ spec, source }: RunMount, index: number, store: string): string[] {
  const { target } = spec;
  const place = quote(target);
  const lines = [
    ...parentDirectories(target).map(
      (parent, depth) =>
        `[ -d ${quote(`${parent}/`)} ] || { mkdir ${quote(parent)}; _bough_made_${index}_${depth}=1; }`,
    ),
    `if [ -e ${place} ] || [ -L ${place} ]; then mv ${place} ${store}/was/${index}; fi`,
  ];
  if (source !== undefined) {
    const content = `${store}/${index}`;
    const root = source.kind === "files" ? source.files.get("") : undefined;
    const isExplicit = root?.type === "directory" && root.isExplicit;
    return [
      ...lines,
      // An empty directory has not been staged.
      `[ -e ${content} ] || mkdir -p ${content}`,
      ...(isExplicit ? [`chmod ${root.mode.toString(8)} ${content}`] : []),
      `mv ${content} ${place}`,
    ];
  }
  const { mode, uid = 0, gid = 0 } = spec.type === "cache" ? spec : { mode: "1777" };
  const owner = uid === 0 && gid === 0 ? [] : [`chown ${uid}:${gid} ${place}`];
  return [...lines, `mkdir ${place}`, ...owner, ...(mode === undefined ? [] : [`chmod ${mode} ${place}`])];
}

/** Returns commands that remove a mount. Directories made for it stay if the command has put files into them. */
function removing({ spec: { target } }: RunMount, index: number, store: string): string[] {
  const made = parentDirectories(target).map(
    (parent, depth) =>
      `[ -z "\${_bough_made_${index}_${depth}-}" ] || rmdir ${quote(parent)} 2>/dev/null || :`,
  );
  const [was, place] = [`${store}/was/${index}`, quote(target)];
  return [
    `rm -rf ${place}`,
    `if [ -e ${was} ] || [ -L ${was} ]; then mv ${was} ${place}; fi`,
    ...made.reverse(),
  ];
}

/** Returns shell commands that end in an `exec` of the RUN's command. */
function programOf(command: ExpandedCommand, user: string | undefined, store: string): string {
  const words =
    command.form === "shell"
      ? ["/bin/sh", "-c", command.line]
      : command.form === "exec"
        ? command.words
        : ["true"];
  const line = words.map(quote).join(" ");
  if (user === undefined) return `PATH=$_bough_path\nexec ${line}`;
  const numeric = numericUser(user);
  if (numeric === undefined) {
    const shown = command.form === "shell" ? command.line : line;
    return `_bough_as=$(command -v su)\nPATH=$_bough_path\nexec "$_bough_as" -s /bin/sh -c ${quote(shown)} ${quote(user)}`;
  }
  const { uid, gid } = numeric;
  // The service would use the group that the image has for the user. `su` accepts only names, so the script adds one temporarily.
  return `_bough_gid=${gid ?? ""} _bough_name= _bough_own=
while IFS=: read -r _bough_n _ _bough_u _bough_own _; do
  if [ "$_bough_u" = ${uid} ]; then
    _bough_name=$_bough_n
    break
  fi
done < /etc/passwd 2> /dev/null || :
[ -n "$_bough_name" ] || _bough_own=
_bough_gid=\${_bough_gid:-\${_bough_own:-0}}
if setpriv --reuid=${uid} --regid="$_bough_gid" --clear-groups true 2> /dev/null; then
  _bough_as=$(command -v setpriv)
  PATH=$_bough_path
  exec "$_bough_as" --reuid=${uid} --regid="$_bough_gid" --clear-groups ${line}
elif chroot --userspec=${uid}:"$_bough_gid" --skip-chdir / true 2> /dev/null; then
  _bough_as=$(command -v chroot)
  PATH=$_bough_path
  exec "$_bough_as" --userspec=${uid}:"$_bough_gid" --skip-chdir / ${line}
fi
if [ "$_bough_gid" != "$_bough_own" ]; then
  _bough_name=_bough
  if [ -e /etc/passwd ]; then cp -p /etc/passwd ${store}/passwd; else : > ${store}/no-passwd; fi
  printf '\\n_bough:x:${uid}:%s::/:/bin/sh\\n' "$_bough_gid" >> /etc/passwd
fi
_bough_as=$(command -v su) || { echo "the image has no setpriv, chroot --userspec or su to run as user ${uid}" >&2; exit 125; }
PATH=$_bough_path
exec "$_bough_as" -p -s /bin/sh -c ${quote(line)} "$_bough_name"`;
}

/** Returns commands that undo the change of `/etc/passwd` by `programOf`. */
function restoringPasswd(store: string): string[] {
  return [
    `[ ! -e ${store}/passwd ] || mv ${store}/passwd /etc/passwd`,
    `[ ! -e ${store}/no-passwd ] || rm -f /etc/passwd`,
  ];
}
