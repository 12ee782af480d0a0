/** The maximum size of a download. A new dependency or a missing minification would exceed it. */
export const archiveLimitBytes = 62_500_000;
/** The maximum size that bough adds to the runtime: its code as text (a seventh) and as bytecode. */
export const programLimitBytes = 20_000_000;
