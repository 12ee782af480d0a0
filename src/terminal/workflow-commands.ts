/** Workflow commands: lines of a job's output by which GitHub Actions marks lines of files. */
import { visible, visibleLines } from "../visible.ts";

/** A message that GitHub shows, at a file's line if it has one. */
export interface Annotation {
  level: "error" | "warning";
  title: string;
  message: string;
  /** `file` is relative to the repository. */
  place: { file: string; line: number; endLine: number } | undefined;
}

/** Returns `::error file=Dockerfile,line=3,endLine=3,title=TITLE::MESSAGE` and a line break. */
export function renderAnnotation({ level, title, message, place }: Annotation): string {
  const properties = Object.entries({ ...place, title }).map(
    ([name, value]) => `${name}=${escapeProperty(value)}`,
  );
  return `::${level} ${properties.join(",")}::${escapeData(visibleLines(message))}\n`;
}

/** Returns the lines between which GitHub takes no line for a command, whatever it says. */
export function pausedCommands(): { begin: string; end: string } {
  // A command of a RUN must not know what ends the pause.
  const token = crypto.randomUUID();
  return { begin: `::stop-commands::${token}\n`, end: `::${token}::\n` };
}

/** Escapes as GitHub's own toolkit does. */
function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(value: string | number): string {
  return escapeData(visible(String(value)))
    .replaceAll(":", "%3A")
    .replaceAll(",", "%2C");
}
