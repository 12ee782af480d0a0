import { type ExpandedCommand, numericUser, quote } from "../commands/command.ts";

/** Returns shell commands that end in an `exec` of the RUN's command. */
export function programOf(command: ExpandedCommand, user: string | undefined, store: string): string {
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
export function restoringPasswd(store: string): string[] {
  return [
    `[ ! -e ${store}/passwd ] || mv ${store}/passwd /etc/passwd`,
    `[ ! -e ${store}/no-passwd ] || rm -f /etc/passwd`,
  ];
}
