import { version as packageVersion } from "../package.json";

declare const BOUGH_COMMIT: string;
declare const BOUGH_DATE: string;

export const version: string = packageVersion;

/** The commit that a release was made of, and its time (ISO 8601, UTC); `undefined` in what is built by hand. */
export const commit: string | undefined = typeof BOUGH_COMMIT === "string" ? BOUGH_COMMIT : undefined;
export const commitDate: string | undefined = typeof BOUGH_DATE === "string" ? BOUGH_DATE : undefined;
