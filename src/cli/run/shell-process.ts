/** A shell on pipes: which process it is, and how what it runs is interrupted, as a terminal would by Ctrl-C. */
import { type ExpandedCommand, quote } from "../../builder/commands/command.ts";
import type { Service } from "../../service/client.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";

/** The shell first prints its process number, between characters that no shell begins with. It prompts, though it has no terminal. */
export function promptingShell({ words }: Extract<ExpandedCommand, { form: "exec" }>): ExpandedCommand {
  const [program = "sh"] = words;
  const shell = words.map(quote).join(" ");
  return { form: "exec", words: [program, "-c", `printf '\\001%s\\002' $$ >&2; exec ${shell} -i`] };
}

const told = /^\u0001(\d+)\u0002/;
const begun = /^\u0001?\d*$/;

/** Takes the number from the beginning of what the shell writes; the rest is passed on. */
export function takeProcessId(write: (data: string | Uint8Array) => void) {
  let pid: number | undefined;
  let held: string | undefined = "";
  return {
    /** `undefined` until it is told. */
    pid: () => pid,
    write(data: string | Uint8Array): void {
      if (held === undefined) {
        write(data);
        return;
      }
      // Byte by character, so that nothing is lost of what comes behind.
      held += Buffer.from(data).toString("latin1");
      const found = told.exec(held);
      if (found === null && begun.test(held) && held.length < 32) return;
      pid = found === null ? undefined : Number(found[1]);
      const rest = Buffer.from(held.slice(found?.[0].length ?? 0), "latin1");
      held = undefined;
      if (rest.length > 0) write(rest);
    },
  };
}

/**
 * What the shell of number `$1` runs in the foreground: what is in its process group and does not ignore the signal, as jobs in the
 * background do. The shell itself only where that is nothing, or where it goes on with other commands: some shells take the end of a
 * child that they do not wait for for the end of their input. For that reason, too, the youngest first.
 */
const interruptScript = `
look() {
  pid= state= group= ignored=
  while read -r name value rest; do
    case $name in
      State:) state=$value ;;
      Pid:) pid=$value ;;
      NSpgid:) group="$value $rest" ;;
      SigIgn:) ignored=$value; break ;;
    esac
  done < "$1"
}
foreground() {
  found=
  for status in /proc/[0-9]*/status; do
    look "$status"
    [ "$group" = "$own" ] && [ "$state" != Z ] && [ "$pid" != $$ ] && [ "$pid" != "$shell" ] || continue
    case $ignored in *[2367abef]) ;; *) found="$pid $found" ;; esac
  done
}
exec 2> /dev/null
shell=$1
look "/proc/$shell/status"
own=$group
foreground
[ "$found" ] || { kill -INT "$shell"; exit; }
kill -INT $found
begun=" $found "
for pass in 1 2 3 4 5 6 7 8; do
  foreground
  for pid in $found; do
    case $begun in *" $pid "*) ;; *) kill -INT "$shell" $found; exit ;; esac
  done
done
`;

/** False where the service can't do that. */
export function interruptShell(
  operation: string,
  pid: number,
  { uid, gid }: Pick<InstanceRequest, "uid" | "gid">,
  service: Pick<Service, "startProcess">,
): Promise<boolean> {
  const user = { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) };
  const args = ["-c", interruptScript, "sh", String(pid)];
  return service.startProcess(operation, { command: "sh", args, shell: false, ...user });
}
