import { version as packageVersion } from "../package.json";

declare const BOUGH_COMMIT: string;
declare const BOUGH_DATE: string;

export const version: string = packageVersion;

/** The commit of a release, and its time (ISO 8601, UTC); `undefined` in other builds. */
export const commit: string | undefined = typeof BOUGH_COMMIT === "string" ? BOUGH_COMMIT : undefined;
export const commitDate: string | undefined = typeof BOUGH_DATE === "string" ? BOUGH_DATE : undefined;
