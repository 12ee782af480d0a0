/** Names of build sessions, and of the directories that their contexts are kept in. */
import { sha256Of } from "../../sha256.ts";

/** Returns `build:<sha16(abspath(context))>` (spec 1). `location` is that path, or the address that a context is fetched from. */
export function buildSession(location: string): string {
  return `build:${contextGroup(location)}`;
}

/** Returns the name of the directory that keeps the contexts of a build session. */
export function contextGroup(location: string): string {
  return sha256Of(location).slice(0, 16);
}

/** Returns the group of a session; `undefined` if it is not a build's session. */
export function contextGroupOf(session: string): string | undefined {
  return /^build:([0-9a-f]{16})$/.exec(session)?.[1];
}
