// One process for the whole suite: the SDK's native runtime starts once.
import './activities';
import './activityTimeouts';
import './messages';
import './endings';
import './startOptions';
import './chains';
import './children';
import './neighbours';
import './updates';
import './updateWithStart';
import './eager';
import './dispatchOrder';
import './replay';
