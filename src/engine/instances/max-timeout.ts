/** What a command may be given at most, in seconds. */
export const maxTimeout = 86_400;
