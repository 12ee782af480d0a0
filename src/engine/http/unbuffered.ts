/** Tells proxies (nginx and those that follow it) to pass each part of a response on at once. */
export const unbuffered = { "X-Accel-Buffering": "no" };
