package queue

// Quiet is the logger of River.
var Quiet = quiet
