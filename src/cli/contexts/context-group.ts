/** Names of build sessions, and of the directories that their contexts are kept in. */
import { sha256Of } from "../../sha256.ts";

/** Returns `build:<sha16(abspath(context))>` (spec 1). `place` is that path, or the address that a context is fetched from. */
export function buildSession(place: string): string {
  return `build:${contextGroup(place)}`;
}

/** Names the directory that the contexts of a build session are kept in. */
export function contextGroup(place: string): string {
  return sha256Of(place).slice(0, 16);
}

/** Returns the group of a session; `undefined` if it is not a build's session. */
export function contextGroupOf(session: string): string | undefined {
  return /^build:([0-9a-f]{16})$/.exec(session)?.[1];
}
