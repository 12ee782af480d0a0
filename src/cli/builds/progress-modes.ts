/** The values of `--progress`. They are apart from the code that implements them, so that help need not load it. */
export const progressModes = ["auto", "tty", "compact", "plain", "json"] as const;
